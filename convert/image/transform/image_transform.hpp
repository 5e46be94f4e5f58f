// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <tuple>

#include "convert/image/decode/array_decoder.hpp"
#include "convert/image/decode/jpeg_decoder.hpp"
#include "convert/image/decode/png_decoder.hpp"
#include "convert/image/transform/orientation.hpp"
#include "convert/image/transform/resampler.hpp"

namespace precache {

/// From the bytes of an image file to a tensor. Reusable for any number of images, by one thread at
/// a time.
class ImageTransform {
 public:
  /// Images of more than `max_pixels` pixels are rejected before anything is allocated for them.
  ImageTransform(const Recipe& recipe, std::uint64_t max_pixels);

  /// Writes the tensor, or says why there is none. REQUIRES: `tensor` has the size of the recipe's
  /// spec.
  std::optional<Rejection> run(std::span<const std::byte> file, std::span<std::byte> tensor);
  /// The same of an array of numbers.  REQUIRES: it has the size of `image`.
  std::optional<Rejection> run(std::span<const std::byte> array, const ArrayImage& image,
                               std::span<std::byte> tensor);
  /// Whether the last image was taken in spite of damage.
  [[nodiscard]] bool warned() const { return warned_; }

 private:
  using AxisKey = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>;
  struct Axis {
    Taps taps;
    std::optional<HorizontalPass> pass;  // where it is a horizontal one
  };
  std::optional<Rejection> run(ImageDecoder& decoder, std::span<const std::byte> file,
                               std::span<std::byte> tensor);
  const Axis& axis(const AxisGeometry& geometry, bool horizontal);

  Recipe recipe_;
  std::uint64_t max_pixels_;
  bool warned_ = false;
  TensorWriter writer_;
  JpegDecoder jpeg_;
  PngDecoder png_;
  ArrayDecoder array_;
  Resampler resampler_;
  OrientingSink orienting_;
  std::map<AxisKey, Axis> horizontal_axes_;  // photos of one camera have one size
  std::map<AxisKey, Axis> vertical_axes_;
  std::size_t horizontal_weights_ = 0;  // in all cached axes
  std::size_t vertical_weights_ = 0;
};

}  // namespace precache
