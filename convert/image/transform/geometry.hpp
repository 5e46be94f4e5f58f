// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "formats/image/taps.hpp"
#include "precache/formats/recipe.hpp"

namespace precache {

struct Geometry {
  AxisGeometry horizontal;
  AxisGeometry vertical;

  [[nodiscard]] bool vertical_first() const {
    return resizes_vertically_first(vertical.source, vertical.resized, horizontal.source,
                                    horizontal.resized);
  }
};

/// Images with longer sides are rejected, because the tables of weights grow with them.
inline constexpr std::uint32_t kLongestSide = 1U << 17;

/// For an image of this size, after its orientation was applied. The definitions are torchvision's
/// (crop) and Pillow's. REQUIRES: no side is longer than kLongestSide.
[[nodiscard]] Geometry make_geometry(const Recipe& recipe, std::uint32_t width,
                                     std::uint32_t height);

}  // namespace precache
