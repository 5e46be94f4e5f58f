// SPDX-License-Identifier: Apache-2.0
#include "convert/image/transform/orientation.hpp"

#include <cstring>

namespace precache {
namespace {

// The ends of the stored image at which the oriented one starts.
constexpr bool starts_right(int orientation) {
  return orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
}
constexpr bool starts_at_bottom(int orientation) {
  return orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
}

}  // namespace

Region stored_region(const Region& oriented, int orientation, std::uint32_t stored_width,
                     std::uint32_t stored_height) {
  Region stored = oriented;
  if (is_transposed(orientation))
    stored = {oriented.y, oriented.x, oriented.height, oriented.width};
  if (starts_right(orientation)) stored.x = stored_width - stored.x - stored.width;
  if (starts_at_bottom(orientation)) stored.y = stored_height - stored.y - stored.height;
  return stored;
}

void OrientingSink::start(std::uint32_t width, std::uint32_t height) {
  width_ = width;
  height_ = height;
  shrink_if_large(pixels_);
  pixels_.clear();
  pixels_.reserve(std::size_t{width} * height * kPixelBytes);
}

void OrientingSink::take_row(const std::uint8_t* pixels) {
  pixels_.insert(pixels_.end(), pixels, pixels + std::size_t{width_} * kPixelBytes);
}

void OrientingSink::hand_over(int orientation, RowSink& sink) {
  const bool transposed = is_transposed(orientation);
  const std::uint32_t rows = transposed ? width_ : height_;
  const std::uint32_t columns = transposed ? height_ : width_;
  row_.resize(std::size_t{columns} * kPixelBytes + kRowSlack);
  for (std::uint32_t row = 0; row < rows; ++row) {
    for (std::uint32_t column = 0; column < columns; ++column) {
      std::uint32_t x = transposed ? row : column;
      std::uint32_t y = transposed ? column : row;
      if (starts_right(orientation)) x = width_ - 1 - x;
      if (starts_at_bottom(orientation)) y = height_ - 1 - y;
      std::memcpy(&row_[std::size_t{column} * kPixelBytes],
                  &pixels_[(std::size_t{y} * width_ + x) * kPixelBytes], kPixelBytes);
    }
    sink.take_row(row_.data());
  }
}

}  // namespace precache
