// SPDX-License-Identifier: Apache-2.0
#include "formats/shard/normalization_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "precache/formats/error.hpp"

namespace precache {

void check_means(const Normalization& normalize) {
  const float largest = *std::ranges::max_element(normalize.mean);
  if (!(largest > 1) || !std::isfinite(largest)) return;
  throw InvalidArgument(
      fmt::format("`normalize` has a mean of {:g}, but it applies to x/255, which is between 0 "
                  "and 1",
                  largest),
      "Divide means and standard deviations by 255.");
}

}  // namespace precache
