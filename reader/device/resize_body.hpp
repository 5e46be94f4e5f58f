// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "formats/image/taps_body.hpp"
#include "reader/device/picture.hpp"

/// Resizes a picture with the bytes of Pillow, as Resampler does.
namespace precache::device {

/// The source pixels and the weights of each output of an axis, computed for each picture.
struct AxisTaps {
  std::int32_t* first = nullptr;
  std::int32_t* count = nullptr;
  std::int32_t* weights = nullptr;  // `most` for each output
  std::uint32_t most = 0;
};

/// The most source pixels that an output may have.
PRECACHE_HOST_DEVICE inline std::uint32_t most_taps(std::uint32_t source, std::uint32_t resized) {
  // The filters reach two pixels at most; the ends are rounded.
  return 4 * ((source + resized - 1) / resized) + 2;
}

/// The number of integers in the taps of an axis whose sources have up to `source` pixels.
PRECACHE_HOST_DEVICE inline std::uint64_t tap_numbers(std::uint32_t source, std::uint32_t resized) {
  return (std::uint64_t{2} + most_taps(source, resized)) * resized;
}

PRECACHE_HOST_DEVICE inline AxisTaps place_taps(std::int32_t* at, std::uint32_t source,
                                                std::uint32_t resized) {
  return {at, at + resized, at + 2 * std::uint64_t{resized}, most_taps(source, resized)};
}

PRECACHE_HOST_DEVICE inline double filter_weight(bool cubic, double x) {
  return cubic ? taps::bicubic(x) : taps::bilinear(x);
}

PRECACHE_HOST_DEVICE inline void make_axis(const Block& block, const AxisTaps& axis, bool cubic,
                                           std::uint32_t source, std::uint32_t resized) {
  const taps::Reach reach = taps::reach_of(source, resized, cubic ? 2.0 : 1.0);
  block.each(resized, [&](std::uint32_t i) {
    const taps::Window window = taps::window_of(reach, source, i);
    axis.first[i] = window.first;
    axis.count[i] = window.end - window.first;
    double sum = 0;
    for (int x = window.first; x < window.end; ++x) {
      sum += filter_weight(cubic, window.at(x, reach));
    }
    std::int32_t* const weights = axis.weights + std::uint64_t{i} * axis.most;
    for (int x = window.first; x < window.end; ++x) {
      const double weight = filter_weight(cubic, window.at(x, reach));
      weights[x - window.first] = taps::fixed_point(sum != 0.0 ? weight / sum : weight);
    }
  });
}

/// The only source pixel of each output; Pillow adds up the steps, with their rounding errors.
PRECACHE_HOST_DEVICE inline void make_nearest_axis(const Block& block, const AxisTaps& axis,
                                                   std::uint32_t source, std::uint32_t resized) {
  block.once([&] {
    const double step = static_cast<double>(source) / resized;
    double at = step * 0.5;
    for (std::uint32_t i = 0; i < resized; ++i, at += step) {
      axis.first[i] =
          source == resized ? static_cast<std::int32_t>(i) : static_cast<std::int32_t>(at);
    }
  });
}

PRECACHE_HOST_DEVICE inline std::uint8_t rounded_sum(std::int32_t sum) {
  const std::int32_t pixel = sum >> taps::kPrecisionBits;
  return static_cast<std::uint8_t>(pixel < 0 ? 0 : pixel > 255 ? 255 : pixel);
}

/// One output of a pass, from `from` on in steps of `step` bytes.
PRECACHE_HOST_DEVICE inline std::uint8_t weighted(const AxisTaps& axis, std::uint32_t output,
                                                  const std::byte* from, std::int64_t step) {
  const std::int32_t* const weights = axis.weights + std::uint64_t{output} * axis.most;
  const std::int32_t count = axis.count[output];
  from += axis.first[output] * step;
  std::int32_t sum = 1 << (taps::kPrecisionBits - 1);
  for (std::int32_t i = 0; i < count; ++i, from += step) {
    sum += static_cast<std::int32_t>(static_cast<std::uint8_t>(*from)) * weights[i];
  }
  return rounded_sum(sum);
}

/// Writes the picture with another number of rows to `to`, channel by channel.
PRECACHE_HOST_DEVICE inline void resize_rows(const Block& block, const PictureView& in,
                                             std::uint32_t channels, const AxisTaps& axis,
                                             std::uint32_t rows, std::byte* to) {
  const std::uint32_t plane = rows * in.width;
  block.each(channels * plane, [&](std::uint32_t i) {
    const std::uint32_t c = i / plane;
    const std::uint32_t y = (i - c * plane) / in.width;
    const std::uint32_t x = i - c * plane - y * in.width;
    to[i] = static_cast<std::byte>(weighted(axis, y, in.at(c, 0, x), in.row));
  });
}

/// The same for columns.
PRECACHE_HOST_DEVICE inline void resize_columns(const Block& block, const PictureView& in,
                                                std::uint32_t channels, const AxisTaps& axis,
                                                std::uint32_t columns, std::byte* to) {
  const std::uint32_t plane = in.height * columns;
  block.each(channels * plane, [&](std::uint32_t i) {
    const std::uint32_t c = i / plane;
    const std::uint32_t y = (i - c * plane) / columns;
    const std::uint32_t x = i - c * plane - y * columns;
    to[i] = static_cast<std::byte>(weighted(axis, x, in.at(c, y, 0), in.column));
  });
}

/// `between` and `numbers` are the block's scratch for the picture between the passes and for taps.
PRECACHE_HOST_DEVICE inline void resize(const Block& block, Picture& picture,
                                        const DeviceStep& step, std::byte* between,
                                        std::int32_t* numbers) {
  const PictureView& in = picture.view;
  const std::uint32_t height = step.height;
  const std::uint32_t width = step.width;
  if (in.height == height && in.width == width) return;
  const AxisTaps columns = place_taps(numbers, in.width, width);
  const AxisTaps rows = place_taps(numbers + tap_numbers(step.in_width, width), in.height, height);
  if (step.interpolation == Interpolation::kNearest) {
    make_nearest_axis(block, columns, in.width, width);
    make_nearest_axis(block, rows, in.height, height);
    picture.replace(block, height, width,
                    [&](std::uint32_t c, std::uint32_t y, std::uint32_t x) -> std::uint8_t {
                      const std::int32_t row = rows.first[y];
                      const std::int32_t column = columns.first[x];
                      if (row >= static_cast<std::int32_t>(in.height)) return 0;
                      if (column >= static_cast<std::int32_t>(in.width)) return 0;
                      return in.pixel(c, row, column);
                    });
    return;
  }
  const bool cubic = step.interpolation == Interpolation::kBicubic;
  if (in.width != width) make_axis(block, columns, cubic, in.width, width);
  if (in.height != height) make_axis(block, rows, cubic, in.height, height);
  const bool only_rows = in.width == width;
  const bool only_columns = in.height == height;
  const bool rows_first = resizes_vertically_first(in.height, height, in.width, width);
  if (only_rows || only_columns) {
    only_rows ? resize_rows(block, in, picture.channels, rows, height, picture.next)
              : resize_columns(block, in, picture.channels, columns, width, picture.next);
  } else if (rows_first) {
    resize_rows(block, in, picture.channels, rows, height, between);
    const PictureView pass{between, in.width, 1, std::int64_t{height} * in.width, height, in.width};
    resize_columns(block, pass, picture.channels, columns, width, picture.next);
  } else {
    resize_columns(block, in, picture.channels, columns, width, between);
    const PictureView pass{between, width, 1, std::int64_t{in.height} * width, in.height, width};
    resize_rows(block, pass, picture.channels, rows, height, picture.next);
  }
  picture.hold_next(height, width);
}

}  // namespace precache::device
