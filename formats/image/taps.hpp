// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "formats/image/taps_body.hpp"
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

/// The source pixels and weights for each output pixel of one axis: Pillow's tables.
struct Taps {
  struct Output {
    std::uint32_t first = 0;  // source pixel
    std::uint32_t count = 0;  // from there on; 0: the pixel stays black
    std::size_t weights = 0;  // index of the first weight
  };
  /// Weights are fixed-point numbers with this many fractional bits.
  static constexpr int kPrecisionBits = taps::kPrecisionBits;

  std::vector<Output> outputs;        // one for each of AxisGeometry::count
  std::vector<std::int32_t> weights;  // empty if every output is a copy of one pixel
  std::uint32_t begin = 0;            // the source pixels that are needed: [begin, end)
  std::uint32_t end = 0;
};

[[nodiscard]] Taps make_taps(const AxisGeometry& axis, Filter filter);

}  // namespace precache
