// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "reader/device/augment_work.hpp"
#include "reader/device/block.hpp"

namespace precache::device {

/// The pixels of a picture wherever they are: crops, flips and quarter turns only change the place
/// of the first one and the distances, which may be negative.
struct PictureView {
  const std::byte* first = nullptr;
  std::int64_t row = 0;  // bytes from a row to the next
  std::int64_t column = 0;
  std::int64_t channel = 0;
  std::uint32_t height = 0;
  std::uint32_t width = 0;

  [[nodiscard]] PRECACHE_HOST_DEVICE const std::byte* at(std::uint32_t c, std::int64_t y,
                                                         std::int64_t x) const {
    return first + c * channel + y * row + x * column;
  }
  /// REQUIRES: pixels of uint8.
  [[nodiscard]] PRECACHE_HOST_DEVICE std::uint8_t pixel(std::uint32_t c, std::int64_t y,
                                                        std::int64_t x) const {
    return static_cast<std::uint8_t>(*at(c, y, x));
  }
  PRECACHE_HOST_DEVICE void crop(std::int64_t top, std::int64_t left, std::uint32_t to_height,
                                 std::uint32_t to_width) {
    first += top * row + left * column;
    height = to_height;
    width = to_width;
  }
  PRECACHE_HOST_DEVICE void flip() {
    first += (std::int64_t{width} - 1) * column;
    column = -column;
  }
  PRECACHE_HOST_DEVICE void flip_vertically() {
    first += (std::int64_t{height} - 1) * row;
    row = -row;
  }
  /// A quarter counter-clockwise.
  PRECACHE_HOST_DEVICE void turn() {
    flip();
    const std::int64_t rows = row;
    row = column;
    column = rows;
    const std::uint32_t sides = height;
    height = width;
    width = sides;
  }
};

/// The picture of a sample while the steps of a list change it. Pixels that change are written to
/// one of two places in the block's scratch, which take turns.
struct Picture {
  PictureView view;
  std::uint32_t channels = 0;
  std::byte* next = nullptr;   // not the place of `view`
  std::byte* other = nullptr;  // may be

  /// Replaces the picture by one of `height` x `width`. `pixel(channel, y, x)` computes it of the
  /// old one.
  template <typename Pixel>
  PRECACHE_HOST_DEVICE void replace(const Block& block, std::uint32_t height, std::uint32_t width,
                                    const Pixel& pixel) {
    std::byte* const to = next;
    const std::uint32_t plane = height * width;
    block.each(channels * plane, [&](std::uint32_t i) {
      const std::uint32_t c = i / plane;
      const std::uint32_t y = (i - c * plane) / width;
      const std::uint32_t x = i - c * plane - y * width;
      to[i] = static_cast<std::byte>(pixel(c, y, x));
    });
    hold_next(height, width);
  }
  /// Makes the pixels that were written to `next` the picture.
  PRECACHE_HOST_DEVICE void hold_next(std::uint32_t height, std::uint32_t width) {
    view = {next, width, 1, std::int64_t{height} * width, height, width};
    next = other;
    other = const_cast<std::byte*>(view.first);
  }
};

}  // namespace precache::device
