// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "formats/bytes/host_device.hpp"

namespace precache {

/// Whether Pillow, since version 13, resizes vertically first. Each pass rounds to eight bits, so
/// the order changes the result.
[[nodiscard]] PRECACHE_HOST_DEVICE constexpr bool resizes_vertically_first(
    std::uint32_t height, std::uint32_t resized_height, std::uint32_t width,
    std::uint32_t resized_width) {
  const std::int64_t rows_less = std::int64_t{height} - resized_height;
  const std::int64_t columns_less = std::int64_t{width} - resized_width;
  return rows_less > 0 && rows_less > 2 * columns_less;
}

}  // namespace precache

/// The definition of Pillow's weights for one output pixel, which GPUs compute too.
namespace precache::taps {

inline constexpr int kPrecisionBits = 22;  // fractional bits of the weights

PRECACHE_HOST_DEVICE inline double bilinear(double x) {
  x = x < 0 ? -x : x;
  return x < 1.0 ? 1.0 - x : 0.0;
}

PRECACHE_HOST_DEVICE inline double bicubic(double x) {
  constexpr double kA = -0.5;
  x = x < 0 ? -x : x;
  if (x < 1.0) return ((kA + 2.0) * x - (kA + 3.0)) * x * x + 1;
  if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * kA;
  return 0.0;
}

PRECACHE_HOST_DEVICE inline std::int32_t fixed_point(double weight) {
  const double scaled = weight * (1 << kPrecisionBits);
  return static_cast<std::int32_t>(weight < 0 ? scaled - 0.5 : scaled + 0.5);
}

/// How far the filter reaches when an axis of `source` pixels becomes one of `resized`.
struct Reach {
  double scale;
  double inverse_scale;  // of the filter, which does not become narrower than a pixel
  double support;
};

PRECACHE_HOST_DEVICE inline Reach reach_of(std::uint32_t source, std::uint32_t resized,
                                           double filter_support) {
  const double scale = static_cast<double>(source) / resized;
  const double filter_scale = scale < 1.0 ? 1.0 : scale;
  return {scale, 1.0 / filter_scale, filter_support * filter_scale};
}

/// The source pixels [first, end) of an output pixel.
struct Window {
  double centre;
  int first;
  int end;

  /// Where the filter is evaluated for a source pixel.
  [[nodiscard]] PRECACHE_HOST_DEVICE double at(int pixel, const Reach& reach) const {
    return (pixel - centre + 0.5) * reach.inverse_scale;
  }
};

PRECACHE_HOST_DEVICE inline Window window_of(const Reach& reach, std::uint32_t source,
                                             std::uint32_t output) {
  const double centre = (output + 0.5) * reach.scale;
  const int begin = static_cast<int>(centre - reach.support + 0.5);
  const int end = static_cast<int>(centre + reach.support + 0.5);
  const int size = static_cast<int>(source);
  return {centre, begin < 0 ? 0 : begin, end < size ? end : size};
}

}  // namespace precache::taps
