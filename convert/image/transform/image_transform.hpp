// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <tuple>

#include "convert/image/decode/array_decoder.hpp"
#include "convert/image/decode/jpeg_decoder.hpp"
#include "convert/image/decode/png_decoder.hpp"
#include "convert/image/transform/orientation.hpp"
#include "convert/image/transform/resampler.hpp"

namespace precache {

/// Turns the bytes of an image file into a tensor. Reusable for any number of images, by one thread
/// at a time.
class ImageTransform {
 public:
  /// Images of more than `max_pixels` pixels are rejected before anything is allocated for them.
  ImageTransform(const Recipe& recipe, std::uint64_t max_pixels);

  /// Writes the tensor, or returns why it cannot. REQUIRES: `tensor` has the size of the recipe's
  /// spec.
  std::optional<Rejection> run(std::span<const std::byte> file, std::span<std::byte> tensor);
  /// The same for an array of numbers.  REQUIRES: it has the size of `image`.
  std::optional<Rejection> run(std::span<const std::byte> array, const ArrayImage& image,
                               std::span<std::byte> tensor);
  /// The same with another decoder.
  std::optional<Rejection> run(ImageDecoder& decoder, std::span<const std::byte> file,
                               std::span<std::byte> tensor);
  /// Of the last image that was not rejected.
  [[nodiscard]] const ImageHeader& header() const { return header_; }
  /// Whether its EXIF orientation turned or mirrored it.
  [[nodiscard]] bool turned() const { return recipe_.apply_exif && header_.orientation != 1; }
  /// Whether the last image was decoded in spite of damage.
  [[nodiscard]] bool warned() const { return warned_; }

 private:
  struct Axis {
    Taps taps;
    std::optional<HorizontalPass> pass;  // of a horizontal axis
  };
  /// Photos of one camera have one size.
  struct AxisCache {
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>, Axis> axes;
    std::size_t weights = 0;  // in all axes
  };
  const Axis& axis(const AxisGeometry& geometry, bool horizontal);

  Recipe recipe_;
  std::uint64_t max_pixels_;
  ImageHeader header_;
  bool warned_ = false;
  TensorWriter writer_;
  JpegDecoder jpeg_;
  PngDecoder png_;
  ArrayDecoder array_;
  Resampler resampler_;
  OrientingSink orienting_;
  AxisCache horizontal_axes_;
  AxisCache vertical_axes_;
};

}  // namespace precache
