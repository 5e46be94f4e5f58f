// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "convert/image/decode/image_decoder.hpp"
#include "formats/shard/pixel_array.hpp"

namespace precache {

/// An array of numbers as an image, and what its numbers mean.
struct ArrayImage {
  PixelArray pixels;
  /// Of floats: whether 1 is white, and not 255.
  bool is_unit_range = false;
};

/// Takes arrays for images. docs/formats/foreign.md says which number is which brightness.
class ArrayDecoder : public ImageDecoder {
 public:
  /// What the arrays given to open() are from now on.
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
