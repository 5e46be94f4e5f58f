// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "formats/image/taps.hpp"
#include "precache/reader/augmentation.hpp"

namespace precache::test {

/// Pixels of one channel.
struct Plane {
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  std::vector<std::uint8_t> pixels{};

  Plane(std::uint32_t rows, std::uint32_t columns)
      : height(rows), width(columns), pixels(std::size_t{rows} * columns) {}
  [[nodiscard]] std::uint8_t& at(std::size_t y, std::size_t x) { return pixels[y * width + x]; }
  [[nodiscard]] std::uint8_t at(std::size_t y, std::size_t x) const {
    return pixels[y * width + x];
  }
  bool operator==(const Plane&) const = default;
};

inline Filter filter_of(Interpolation interpolation) {
  return interpolation == Interpolation::kNearest    ? Filter::kNearest
         : interpolation == Interpolation::kBilinear ? Filter::kBilinear
                                                     : Filter::kBicubic;
}

/// One pass of Pillow's definition, pixel by pixel with 64-bit sums.
inline Plane resized_one_way(const Plane& in, std::uint32_t size, bool horizontal, Filter filter) {
  const std::uint32_t source = horizontal ? in.width : in.height;
  const Taps taps = make_taps({source, size, 0, size, 0}, filter);
  Plane out(horizontal ? in.height : size, horizontal ? size : in.width);
  for (std::size_t y = 0; y < out.height; ++y) {
    for (std::size_t x = 0; x < out.width; ++x) {
      const Taps::Output& output = taps.outputs[horizontal ? x : y];
      const auto pixel = [&](std::size_t i) {
        return horizontal ? in.at(y, output.first + i) : in.at(output.first + i, x);
      };
      if (taps.weights.empty()) {
        out.at(y, x) = output.count == 0 ? std::uint8_t{0} : pixel(0);
        continue;
      }
      std::int64_t sum = std::int64_t{1} << (Taps::kPrecisionBits - 1);
      for (std::size_t i = 0; i < output.count; ++i) {
        sum += std::int64_t{taps.weights[output.weights + i]} * pixel(i);
      }
      out.at(y, x) =
          static_cast<std::uint8_t>(std::clamp<std::int64_t>(sum >> Taps::kPrecisionBits, 0, 255));
    }
  }
  return out;
}

/// Pillow's resize(), with the order of passes of version 13.
inline Plane resized(const Plane& in, std::uint32_t height, std::uint32_t width,
                     Interpolation interpolation) {
  const Filter filter = filter_of(interpolation);
  const bool vertical_first = resizes_vertically_first(in.height, height, in.width, width);
  const Plane between =
      resized_one_way(in, vertical_first ? height : width, !vertical_first, filter);
  return resized_one_way(between, vertical_first ? width : height, vertical_first, filter);
}

}  // namespace precache::test
