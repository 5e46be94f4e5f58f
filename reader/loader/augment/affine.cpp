// SPDX-License-Identifier: Apache-2.0
#include "reader/loader/augment/affine.hpp"

#include <algorithm>

#include "reader/loader/augment/affine_body.hpp"
#include "reader/loader/augment/warp_kernels.hpp"

namespace precache::augment {
namespace {

/// Pillow's fixed-point arithmetic for coordinates below 2^15.
void nearest_by_fixed_point(const Warp& warp, const AffineMatrix& matrix) {
  const double* const at = matrix.at;
  warp_fixed(warp,
             {fixed(at[2] + at[0] * 0.5 + at[1] * 0.5), fixed(at[5] + at[3] * 0.5 + at[4] * 0.5)},
             {fixed(at[0]), fixed(at[3])}, {fixed(at[1]), fixed(at[4])});
}

/// Pillow's way without rotation and shear: rows and columns are independent. It adds up the steps.
void nearest_by_scale(const Warp& warp, const AffineMatrix& matrix) {
  Columns columns{warp.width, 0};
  double x = matrix.at[2] + matrix.at[0] * 0.5;
  for (std::uint32_t column = 0; column < warp.width; ++column, x += matrix.at[0]) {
    const std::int32_t source = pixel_index(x);
    if (source < 0 || static_cast<std::uint32_t>(source) >= warp.width) continue;
    columns = {std::min(columns.begin, column), column + 1};
    warp.table()[column] = static_cast<std::uint32_t>(source);
  }
  if (columns.end == 0) columns = {0, 0};
  double y = matrix.at[5] + matrix.at[4] * 0.5;
  for (std::uint32_t row = 0; row < warp.height; ++row, y += matrix.at[4]) {
    const std::int32_t source = pixel_index(y);
    if (source < 0 || static_cast<std::uint32_t>(source) >= warp.height) {
      fill_row(warp, row, {0, warp.width});
    } else {
      warp_by_table(warp, row, static_cast<std::uint32_t>(source), columns);
    }
  }
}

/// Pillow's way for coordinates that are large: it adds up the steps, pixel by pixel.
void nearest_by_steps(const Warp& warp, const AffineMatrix& matrix) {
  const double* const at = matrix.at;
  double row_x = at[2] + at[1] * 0.5 + at[0] * 0.5;
  double row_y = at[5] + at[4] * 0.5 + at[3] * 0.5;
  for (std::uint32_t row = 0; row < warp.height; ++row, row_x += at[1], row_y += at[4]) {
    double x = row_x;
    double y = row_y;
    for (std::uint32_t column = 0; column < warp.width; ++column, x += at[0], y += at[3]) {
      const std::int32_t source_x = pixel_index(x);
      const std::int32_t source_y = pixel_index(y);
      if (source_x < 0 || static_cast<std::uint32_t>(source_x) >= warp.width || source_y < 0 ||
          static_cast<std::uint32_t>(source_y) >= warp.height) {
        fill_row(warp, row, {column, column + 1});
      } else {
        put_pixel(warp, row, column, static_cast<std::uint32_t>(source_y),
                  static_cast<std::uint32_t>(source_x));
      }
    }
  }
}

/// Any coordinates, even infinite ones.
void bilinear_by_pixel(const Warp& warp, const AffineMatrix& matrix) {
  const double* const at = matrix.at;
  for (std::uint32_t row = 0; row < warp.height; ++row) {
    const double middle = row + 0.5;
    const Coordinate x_at{at[0], at[1] * middle, at[2]};
    const Coordinate y_at{at[3], at[4] * middle, at[5]};
    for (std::uint32_t column = 0; column < warp.width; ++column) {
      const double x = x_at(column);
      const double y = y_at(column);
      if (x >= 0 && x < warp.width && y >= 0 && y < warp.height) {
        put_bilinear_pixel(warp, row, column, x, y);
      } else {
        fill_row(warp, row, {column, column + 1});
      }
    }
  }
}

void run(const Warp& warp, const AffineMatrix& matrix, Interpolation interpolation) {
  const double* const at = matrix.at;
  weave(warp);
  if (interpolation != Interpolation::kNearest) {
    if (!corners_below(matrix, warp.height, warp.width, 1e15))
      return bilinear_by_pixel(warp, matrix);
    return warp_bilinear(warp, {at[0], 0, at[2]}, at[1], {at[3], 0, at[5]}, at[4]);
  }
  if (at[1] == 0 && at[3] == 0) return nearest_by_scale(warp, matrix);
  if (corners_below(matrix, warp.height, warp.width, 32768))
    return nearest_by_fixed_point(warp, matrix);
  nearest_by_steps(warp, matrix);
}

/// A rotation by 90 degrees in either direction, which keeps the size.
void turn_once(PlanarImage& image, PlanarImage& spare, bool clockwise) {
  const std::uint32_t size = image.width();
  spare.resize(image.shape());
  constexpr std::uint32_t kTile = 16;  // rows and columns of a tile stay in the cache
  for (std::uint32_t channel = 0; channel < image.channels(); ++channel) {
    const std::uint8_t* const in = image.plane(channel);
    std::uint8_t* const out = spare.plane(channel);
    for (std::uint32_t top = 0; top < size; top += kTile) {
      const std::uint32_t bottom = std::min(size, top + kTile);
      for (std::uint32_t x = 0; x < size; ++x) {
        std::uint8_t* const row = out + std::size_t{clockwise ? x : size - 1 - x} * size;
        for (std::uint32_t y = top; y < bottom; ++y) {
          row[clockwise ? size - 1 - y : y] = in[std::size_t{y} * size + x];
        }
      }
    }
  }
  image.swap(spare);
}

/// By 180 degrees.
void turn_over(PlanarImage& image) {
  for (std::uint32_t channel = 0; channel < image.channels(); ++channel) {
    std::reverse(image.plane(channel), image.plane(channel) + image.plane_size());
  }
}

}  // namespace

AffineMatrix inverse_matrix(const AffineMap& map, Point center) {
  return inverse_affine_matrix(map.degrees, map.translate, map.scale, map.shear, center);
}

void transform(PlanarImage& image, PlanarImage& spare, const AffineMatrix& matrix,
               const Sampling& sampling) {
  if (image.plane_size() == 0) return;
  // The words of the pixels with their border, and a row for a table.
  spare.resize({kWovenChannels, image.height() + 3, image.width() + 2});
  Warp warp{.woven = reinterpret_cast<std::uint32_t*>(spare.plane(0)),
            .height = image.height(),
            .width = image.width()};
  for (std::uint32_t first = 0; first < image.channels(); first += kWovenChannels) {
    warp.channels = std::min(kWovenChannels, image.channels() - first);
    for (std::uint32_t channel = 0; channel < warp.channels; ++channel) {
      warp.planes[channel] = image.plane(first + channel);
      const std::span<const std::uint8_t> fill = sampling.fill;
      warp.fill[channel] = fill.empty() ? 0 : fill[fill.size() == 1 ? 0 : first + channel];
    }
    run(warp, matrix, sampling.interpolation);
  }
}

void affine(PlanarImage& image, PlanarImage& spare, const AffineMap& map,
            const Sampling& sampling) {
  const Point middle{image.width() * 0.5, image.height() * 0.5};
  transform(image, spare, inverse_matrix(map, map.center.value_or(middle)), sampling);
}

void rotate(PlanarImage& image, PlanarImage& spare, double degrees, std::optional<Point> center,
            const Sampling& sampling) {
  const double angle = whole_turn(degrees);
  if (!center) {
    if (angle == 0) return;
    if (angle == 180) return turn_over(image);
    if ((angle == 90 || angle == 270) && image.width() == image.height()) {
      return turn_once(image, spare, angle == 270);
    }
  }
  const Point middle = center.value_or(Point{image.width() / 2.0, image.height() / 2.0});
  transform(image, spare, rotation_matrix(angle, middle), sampling);
}

}  // namespace precache::augment
