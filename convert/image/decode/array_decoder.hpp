// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "convert/image/decode/image_decoder.hpp"
#include "formats/shard/pixel_array.hpp"

namespace precache {

/// The shape and the value range of an array that holds an image.
struct ArrayImage {
  PixelArray pixels;
  /// Of floats: whether 1 is white, and not 255.
  bool is_unit_range = false;
};

/// Decodes arrays of numbers. docs/formats/foreign.md defines the brightness of each number.
class ArrayDecoder : public ImageDecoder {
 public:
  /// Describes the arrays that are passed to open() from now on.
  void expect(const ArrayImage& image) { image_ = image; }

  std::optional<Rejection> open(std::span<const std::byte> file, ImageHeader& header) override;
  std::optional<Rejection> decode(const Region& region, RowSink& sink) override;
  [[nodiscard]] bool warned() const override { return false; }

 private:
  template <typename T>
  std::optional<Rejection> check() const;
  template <typename T>
  void hand_over(const Region& region, RowSink& sink);

  ArrayImage image_;
  std::span<const std::byte> array_;
  std::vector<std::uint8_t> row_;
};

}  // namespace precache
