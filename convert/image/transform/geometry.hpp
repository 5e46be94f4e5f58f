// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

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

struct Geometry {
  AxisGeometry horizontal;
  AxisGeometry vertical;

  /// Whether Pillow, since version 13, resizes vertically first. Each pass rounds to eight bits, so
  /// the order changes the result.
  [[nodiscard]] bool vertical_first() const;
};

/// Images with longer sides are rejected, because the tables of weights grow with them.
inline constexpr std::uint32_t kLongestSide = 1U << 17;

/// For an image of this size, after its orientation was applied. The definitions are torchvision's
/// (crop) and Pillow's. REQUIRES: no side is longer than kLongestSide.
[[nodiscard]] Geometry make_geometry(const Recipe& recipe, std::uint32_t width,
                                     std::uint32_t height);

}  // namespace precache
