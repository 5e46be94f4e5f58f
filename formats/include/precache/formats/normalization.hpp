// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace precache {

/// A pixel x of channel c becomes (x/255 - mean[c]) / std[c], in float32, in this order.
struct Normalization {
  std::array<float, 3> mean{};
  std::array<float, 3> std{1, 1, 1};
  [[nodiscard]] float operator()(std::uint8_t pixel, std::size_t channel) const {
    return (static_cast<float>(pixel) / 255.0F - mean[channel]) / std[channel];
  }
  /// Whether all standard deviations are above 0 and so large that pixels divided by them are
  /// finite.
  [[nodiscard]] bool has_usable_std() const {
    return std::ranges::all_of(std, [](float value) { return value > 0 && std::isnormal(value); });
  }
  bool operator==(const Normalization&) const = default;
};

}  // namespace precache
