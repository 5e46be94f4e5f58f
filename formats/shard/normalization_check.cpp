// SPDX-License-Identifier: Apache-2.0
#include "formats/shard/normalization_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "precache/formats/error.hpp"

namespace precache {

namespace {

void check_at_most_one(const std::array<float, 3>& numbers, const char* noun) {
  const float largest = *std::ranges::max_element(numbers);
  if (!(largest > 1) || !std::isfinite(largest)) return;
  throw InvalidArgument(
      fmt::format("`normalize` has a {} of {:g}, but it applies to x/255, which is between 0 and 1",
                  noun, largest),
      "Divide means and standard deviations by 255.");
}

}  // namespace

void check_unit_range(const Normalization& normalize) {
  check_at_most_one(normalize.mean, "mean");
  check_at_most_one(normalize.std, "standard deviation");
}

}  // namespace precache
