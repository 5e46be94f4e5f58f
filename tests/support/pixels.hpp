// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "convert/image/decode/image_decoder.hpp"

namespace precache::test {

/// Keeps all rows of four-byte pixels, and reads the slack after each like a kernel might.
class CollectingSink : public RowSink {
 public:
  explicit CollectingSink(std::uint32_t width) : row_bytes_(std::size_t{width} * kPixelBytes) {}
  void take_row(const std::uint8_t* row) override {
    slack_ += std::count(row + row_bytes_, row + row_bytes_ + kRowSlack, 0);
    pixels.insert(pixels.end(), row, row + row_bytes_);
    ++rows;
  }

  std::vector<std::uint8_t> pixels;
  std::uint32_t rows = 0;

 private:
  std::size_t row_bytes_;
  std::ptrdiff_t slack_ = 0;  // makes the reads of the slack count
};

/// A part of an image of four-byte pixels.
inline std::vector<std::uint8_t> part_of(const std::vector<std::uint8_t>& pixels,
                                         std::uint32_t width, const Region& region) {
  std::vector<std::uint8_t> part;
  for (std::uint32_t y = region.y; y < region.y + region.height; ++y) {
    const auto begin = pixels.begin() + static_cast<std::ptrdiff_t>(
                                            (std::size_t{y} * width + region.x) * kPixelBytes);
    part.insert(part.end(), begin, begin + static_cast<std::ptrdiff_t>(region.width * kPixelBytes));
  }
  return part;
}

/// True if red, green and blue are equal; ignores the fourth byte.
inline bool same_colors(const std::vector<std::uint8_t>& a, const std::vector<std::uint8_t>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (i % kPixelBytes != 3 && a[i] != b[i]) return false;
  }
  return true;
}

}  // namespace precache::test
