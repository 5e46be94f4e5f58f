// SPDX-License-Identifier: Apache-2.0
#include "formats/shard/normalization_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "precache/formats/error.hpp"

namespace precache {

namespace {

// Those of x/255 are at most 0.5, but recipes may scale by others. Those of pixels are 40 to 80.
constexpr float kLargestDeviation = 10;

void check_range(const std::array<float, 3>& numbers, float most, const char* noun) {
  const float largest = *std::ranges::max_element(numbers);
  if (!(largest > most) || !std::isfinite(largest)) return;
  throw InvalidArgument(
      fmt::format("`normalize` has a {} of {:g}, but it applies to x/255, which is between 0 and 1",
                  noun, largest),
      "Divide means and standard deviations by 255.");
}

}  // namespace

void check_unit_range(const Normalization& normalize) {
  check_range(normalize.mean, 1, "mean");
  check_range(normalize.std, kLargestDeviation, "standard deviation");
}

}  // namespace precache
