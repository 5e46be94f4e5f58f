// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "precache/formats/recipe.hpp"

namespace precache {

/// How one axis of an image becomes one axis of a tensor: `source` pixels are resized to `resized`,
/// of which [first, first + count) go to the tensor from `placed_at` on. The rest of the tensor is
/// filled.
struct AxisGeometry {
  std::uint32_t source = 0;
  std::uint32_t resized = 0;
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::uint32_t placed_at = 0;
  bool operator==(const AxisGeometry&) const = default;
};

struct Geometry {
  AxisGeometry horizontal;
  AxisGeometry vertical;

  /// Which pass Pillow does first, since version 13; as each rounds to eight bits, the order shows
  /// in the result.
  [[nodiscard]] bool vertical_first() const;
};

/// Longer sides are rejected: the tables of weights grow with them.
inline constexpr std::uint32_t kLongestSide = 1U << 17;

/// For an image of this size, its orientation applied. REQUIRES: no side is longer than
/// kLongestSide. The definitions are torchvision's (crop) and Pillow's.
[[nodiscard]] Geometry make_geometry(const Recipe& recipe, std::uint32_t width,
                                     std::uint32_t height);

}  // namespace precache
