// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "precache/reader/augmentation.hpp"
#include "reader/loader/augment/policies.hpp"

namespace precache {

/// One of the two changes of a sub-policy of AutoAugment.
struct LearnedStep {
  PolicyChange change;
  double p;
  std::uint8_t magnitude = 0;  // of 10; ignored by changes without one
};

using SubPolicy = std::array<LearnedStep, 2>;
using LearnedPolicy = std::array<SubPolicy, 25>;

/// The policies that AutoAugment learned, as in torchvision.
[[nodiscard]] const LearnedPolicy& learned_policy(AutoAugmentPolicy policy);

}  // namespace precache
