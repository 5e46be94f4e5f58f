// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

#include "formats/bytes/host_device.hpp"

/// Where an affine map finds its pixels: the definition of Pillow 13, for one pixel.
namespace precache::augment {

/// A point of the source in units of 1/65536 pixels, which steps from pixel to pixel.
struct FixedPoint {
  std::int32_t x = 0;
  std::int32_t y = 0;
};

/// The conversion of an x86 processor: what does not fit becomes the lowest integer.
PRECACHE_HOST_DEVICE inline std::int32_t truncated(double value) {
  return value > -2147483649.0 && value < 2147483648.0 ? static_cast<std::int32_t>(value)
                                                       : INT32_MIN;
}

/// Rounds to the next unit of 1/65536.
PRECACHE_HOST_DEVICE inline std::int32_t fixed(double value) {
  return truncated(std::floor(value * 65536.0 + 0.5));
}

/// A coordinate as a pixel's index; -1 if it is negative.
PRECACHE_HOST_DEVICE inline std::int32_t pixel_index(double value) {
  return value < 0 ? -1 : truncated(value);
}

/// One coordinate of the middle of pixel `x` of the row whose middle is at `row`:
/// (slope * x + row) + offset, in this order.
struct Coordinate {
  double slope = 0;
  double row = 0;
  double offset = 0;
  PRECACHE_HOST_DEVICE double operator()(std::uint32_t x) const {
    return slope * (static_cast<double>(x) + 0.5) + row + offset;
  }
};

/// Between two values; computed with doubles, as the result is truncated.
PRECACHE_HOST_DEVICE inline double between(double a, double b, double share) {
  return a + (b - a) * share;
}

}  // namespace precache::augment
