// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "reader/loader/augment/affine_body.hpp"

/// The loops of affine maps, compiled for each instruction set, with the same results on all.
/// Thread-safe.
///
/// Up to four channels are first woven into words, so that one gather loads a pixel. Around them is
/// a border of one pixel, a copy of the edge, so that no neighbour needs a test.
namespace precache::augment {

constexpr std::uint32_t kWovenChannels = 4;

/// The pixels of a map's source and the planes of its result, which have the same size.
struct Warp {
  std::uint32_t* woven = nullptr;  // (height + 2) rows of (width + 2), and then a row for a table
  std::array<std::uint8_t*, kWovenChannels> planes{};
  std::array<std::uint8_t, kWovenChannels> fill{};
  std::uint32_t channels = 0;
  std::uint32_t height = 0;
  std::uint32_t width = 0;

  [[nodiscard]] std::size_t stride() const { return std::size_t{width} + 2; }
  /// The pixel at the top left, in the border's frame.
  [[nodiscard]] std::uint32_t* first() const { return woven + stride() + 1; }
  /// One index for each column of the result.
  [[nodiscard]] std::uint32_t* table() const { return woven + stride() * (height + 2); }
};

/// Columns begin, begin + 1, ..., end - 1.
struct Columns {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};

/// Copies the planes into the words.
void weave(const Warp& warp);
/// The nearest pixels: `start` is that of the first pixel, and the others are a multiple of `right`
/// and of `down` away.
void warp_fixed(const Warp& warp, FixedPoint start, FixedPoint right, FixedPoint down);
/// One row: of the columns, each pixel is that of row `source_row` at the table's index. The rest
/// is filled.
void warp_by_table(const Warp& warp, std::uint32_t row, std::uint32_t source_row, Columns columns);
/// Fills a row.
void fill_row(const Warp& warp, std::uint32_t row, Columns columns);
/// One pixel.
void put_pixel(const Warp& warp, std::uint32_t row, std::uint32_t column, std::uint32_t source_row,
               std::uint32_t source_column);
/// One bilinear value.  REQUIRES: (x, y) is in the image.
void put_bilinear_pixel(const Warp& warp, std::uint32_t row, std::uint32_t column, double x,
                        double y);
/// Bilinear values; `x` and `y` get their rows from the slopes.
void warp_bilinear(const Warp& warp, Coordinate x, double x_down, Coordinate y, double y_down);

}  // namespace precache::augment
