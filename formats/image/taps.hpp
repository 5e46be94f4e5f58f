// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "precache/formats/recipe.hpp"

namespace precache {

/// How one axis of an image becomes one axis of a tensor: `source` pixels are resized to `resized`,
/// of which [first, first + count) go to the tensor from `placed_at` on. The rest is padding.
struct AxisGeometry {
  std::uint32_t source = 0;
  std::uint32_t resized = 0;
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::uint32_t placed_at = 0;
  bool operator==(const AxisGeometry&) const = default;
};

/// Whether Pillow, since version 13, resizes vertically first. Each pass rounds to eight bits, so
/// the order changes the result.
[[nodiscard]] constexpr bool resizes_vertically_first(std::uint32_t height,
                                                      std::uint32_t resized_height,
                                                      std::uint32_t width,
                                                      std::uint32_t resized_width) {
  const std::int64_t rows_less = std::int64_t{height} - resized_height;
  const std::int64_t columns_less = std::int64_t{width} - resized_width;
  return rows_less > 0 && rows_less > 2 * columns_less;
}

/// The source pixels and weights for each output pixel of one axis: Pillow's tables.
struct Taps {
  struct Output {
    std::uint32_t first = 0;  // source pixel
    std::uint32_t count = 0;  // from there on; 0: the pixel stays black
    std::size_t weights = 0;  // index of the first weight
  };
  /// Weights are fixed-point numbers with this many fractional bits.
  static constexpr int kPrecisionBits = 22;

  std::vector<Output> outputs;        // one for each of AxisGeometry::count
  std::vector<std::int32_t> weights;  // empty if every output is a copy of one pixel
  std::uint32_t begin = 0;            // the source pixels that are needed: [begin, end)
  std::uint32_t end = 0;
};

[[nodiscard]] Taps make_taps(const AxisGeometry& axis, Filter filter);

}  // namespace precache
