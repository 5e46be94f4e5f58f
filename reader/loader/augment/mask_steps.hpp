// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "reader/loader/augment/operation_list.hpp"

namespace precache::augment {

/// The steps that a mask takes along with its image, whose steps these are: the same draws, and
/// pixels chosen by nearest neighbour. Steps that only change colours are left out; of those that
/// have several changes, such as RandAugment, only the geometric ones are made. `fill` replaces
/// that of the steps; none: throws InvalidArgument if one has several values.
[[nodiscard]] std::vector<Step> mask_steps(std::vector<Step> image_steps,
                                           std::optional<std::uint8_t> fill);

}  // namespace precache::augment
