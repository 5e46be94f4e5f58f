// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "reader/device/picture.hpp"
#include "reader/loader/augment/affine_body.hpp"
#include "reader/loader/augment/affine_matrix_body.hpp"

/// Rotations and affine maps, as reader/loader/augment/affine.hpp has them: how the source of each
/// pixel is found depends on the matrix, as in Pillow.
namespace precache::device {

PRECACHE_HOST_DEVICE inline bool is_within(std::int64_t at, std::uint32_t size) {
  return at >= 0 && at < std::int64_t{size};
}

/// Nearest pixels; `fill(channel)` is for places outside.
template <typename Fill>
PRECACHE_HOST_DEVICE inline void warp_fixed(const Block& block, Picture& picture,
                                            const augment::AffineMatrix& matrix, const Fill& fill) {
  using augment::fixed;
  const PictureView& in = picture.view;
  const double* const at = matrix.at;
  const std::int64_t start_x = fixed(at[2] + at[0] * 0.5 + at[1] * 0.5);
  const std::int64_t start_y = fixed(at[5] + at[3] * 0.5 + at[4] * 0.5);
  const std::int64_t right_x = fixed(at[0]);
  const std::int64_t right_y = fixed(at[3]);
  const std::int64_t down_x = fixed(at[1]);
  const std::int64_t down_y = fixed(at[4]);
  picture.replace(block, in.height, in.width,
                  [&](std::uint32_t c, std::uint32_t y, std::uint32_t x) {
                    const std::int64_t column = (start_x + y * down_x + x * right_x) >> 16;
                    const std::int64_t row = (start_y + y * down_y + x * right_y) >> 16;
                    if (!is_within(column, in.width) || !is_within(row, in.height)) return fill(c);
                    return in.pixel(c, row, column);
                  });
}

/// Without rotation and shear, rows and columns are independent. Pillow adds up the steps.
/// `numbers` has room for the sources of all columns and rows.
template <typename Fill>
PRECACHE_HOST_DEVICE inline void warp_scaled(const Block& block, Picture& picture,
                                             const augment::AffineMatrix& matrix, const Fill& fill,
                                             std::int32_t* numbers) {
  const PictureView& in = picture.view;
  std::int32_t* const columns = numbers;
  std::int32_t* const rows = numbers + in.width;
  block.each(2, [&](std::uint32_t axis) {
    std::int32_t* const sources = axis == 0 ? columns : rows;
    const std::uint32_t size = axis == 0 ? in.width : in.height;
    const double step = axis == 0 ? matrix.at[0] : matrix.at[4];
    double at = (axis == 0 ? matrix.at[2] : matrix.at[5]) + step * 0.5;
    for (std::uint32_t i = 0; i < size; ++i, at += step) sources[i] = augment::pixel_index(at);
  });
  picture.replace(block, in.height, in.width,
                  [&](std::uint32_t c, std::uint32_t y, std::uint32_t x) {
                    const std::int32_t column = columns[x];
                    const std::int32_t row = rows[y];
                    if (!is_within(column, in.width) || !is_within(row, in.height)) return fill(c);
                    return in.pixel(c, row, column);
                  });
}

/// For coordinates that are large, Pillow adds up the steps pixel by pixel.
template <typename Fill>
PRECACHE_HOST_DEVICE inline void warp_by_steps(const Block& block, Picture& picture,
                                               const augment::AffineMatrix& matrix,
                                               const Fill& fill) {
  const PictureView& in = picture.view;
  const double* const at = matrix.at;
  std::byte* const to = picture.next;
  const std::uint32_t plane = in.height * in.width;
  const std::uint32_t channels = picture.channels;
  block.each(in.height, [&](std::uint32_t y) {
    double x_at = at[2] + at[1] * 0.5 + at[0] * 0.5;
    double y_at = at[5] + at[4] * 0.5 + at[3] * 0.5;
    for (std::uint32_t i = 0; i < y; ++i, x_at += at[1], y_at += at[4]) {
    }
    for (std::uint32_t x = 0; x < in.width; ++x, x_at += at[0], y_at += at[3]) {
      const std::int32_t column = augment::pixel_index(x_at);
      const std::int32_t row = augment::pixel_index(y_at);
      const bool is_inside = is_within(column, in.width) && is_within(row, in.height);
      for (std::uint32_t c = 0; c < channels; ++c) {
        to[std::uint64_t{c} * plane + std::uint64_t{y} * in.width + x] =
            static_cast<std::byte>(is_inside ? in.pixel(c, row, column) : fill(c));
      }
    }
  });
  picture.hold_next(in.height, in.width);
}

template <typename Fill>
PRECACHE_HOST_DEVICE inline void warp_bilinear(const Block& block, Picture& picture,
                                               const augment::AffineMatrix& matrix,
                                               const Fill& fill) {
  const PictureView& in = picture.view;
  const double* const at = matrix.at;
  picture.replace(
      block, in.height, in.width, [&](std::uint32_t c, std::uint32_t y, std::uint32_t x) {
        const double middle = y + 0.5;
        const double x_at = augment::Coordinate{at[0], at[1] * middle, at[2]}(x);
        const double y_at = augment::Coordinate{at[3], at[4] * middle, at[5]}(x);
        if (!(x_at >= 0 && x_at < in.width && y_at >= 0 && y_at < in.height)) return fill(c);
        const double left = floor(x_at - 0.5);
        const double top = floor(y_at - 0.5);
        const double right_share = (x_at - 0.5) - left;
        const double bottom_share = (y_at - 0.5) - top;
        // Around the image is a copy of its edge.
        const auto within = [](double place, std::uint32_t size) {
          const auto whole = static_cast<std::int64_t>(place);
          return whole < 0 ? 0 : whole < std::int64_t{size} ? whole : std::int64_t{size} - 1;
        };
        const std::int64_t first_row = within(top, in.height);
        const std::int64_t last_row = within(top + 1, in.height);
        const std::int64_t first_column = within(left, in.width);
        const std::int64_t last_column = within(left + 1, in.width);
        const auto value = [&](std::int64_t row, std::int64_t column) {
          return static_cast<double>(in.pixel(c, row, column));
        };
        const double high = augment::between(value(first_row, first_column),
                                             value(first_row, last_column), right_share);
        const double low = augment::between(value(last_row, first_column),
                                            value(last_row, last_column), right_share);
        return static_cast<std::uint8_t>(augment::between(high, low, bottom_share));
      });
}

/// `Image.transform(AFFINE)`.
template <typename Fill>
PRECACHE_HOST_DEVICE inline void warp(const Block& block, Picture& picture, const DeviceStep& step,
                                      const augment::AffineMatrix& matrix, const Fill& fill,
                                      std::int32_t* numbers) {
  const double* const at = matrix.at;
  if (step.interpolation != Interpolation::kNearest) {
    warp_bilinear(block, picture, matrix, fill);
  } else if (at[1] == 0 && at[3] == 0) {
    warp_scaled(block, picture, matrix, fill, numbers);
  } else if (augment::corners_below(matrix, picture.view.height, picture.view.width, 32768)) {
    warp_fixed(block, picture, matrix, fill);
  } else {
    warp_by_steps(block, picture, matrix, fill);
  }
}

}  // namespace precache::device
