// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <string_view>

#include "precache/formats/error.hpp"
#include "precache/reader/augmentation.hpp"
#include "reader/loader/augment/planar_image.hpp"

/// Checks of operations, for images of one shape. All throw InvalidArgument, with the names of the
/// operation and the field.
namespace precache::augment {

inline constexpr std::uint32_t kLargestSide = 65'535;

inline void check_side(std::string_view operation, std::string_view field, std::uint32_t side) {
  if (side >= 1 && side <= kLargestSide) return;
  throw InvalidArgument(fmt::format("{}: `{}` must be between 1 and {}, got {}", operation, field,
                                    kLargestSide, side));
}

inline void check_size(std::string_view operation, std::uint32_t height, std::uint32_t width) {
  check_side(operation, "height", height);
  check_side(operation, "width", width);
}

/// `p` must be a probability.
inline void check_chance(std::string_view operation, double p) {
  if (p >= 0 && p <= 1) return;  // not true for NaN
  throw InvalidArgument(fmt::format("{}: `p` must be between 0 and 1, got {}", operation, p));
}

enum class Lowest { kIncluded, kExcluded };

/// Both numbers must be within `low` and `high`, and in order.
inline void check_range(std::string_view operation, std::string_view field, const Range& range,
                        double low, double high, Lowest lowest = Lowest::kIncluded) {
  const auto& [from, to] = range;
  if (from <= to && (from > low || (from == low && lowest == Lowest::kIncluded)) && to <= high) {
    return;  // not for NaN
  }
  throw InvalidArgument(
      fmt::format("{}: `{}` must be (low, high) with {} {} low <= high <= {}, "
                  "got ({}, {})",
                  operation, field, low, lowest == Lowest::kIncluded ? "<=" : "<", high, from, to));
}

inline void check_fill(std::string_view operation, const Fill& fill, std::uint32_t channels) {
  if (fill.size() <= 1 || fill.size() == channels) return;
  throw InvalidArgument(fmt::format("{}: `fill` must have one value or {}, got {}", operation,
                                    channels, fill.size()));
}

// Those of geometry.hpp are there.
void check(const RandomRotation& operation, const ImageShape& shape);
void check(const RandomAffine& operation, const ImageShape& shape);
void check(const ColorJitter& operation, const ImageShape& shape);
void check(const RandomGrayscale& operation, const ImageShape& shape);
void check(const RandomErasing& operation, const ImageShape& shape);
void check(const GaussianBlur& operation, const ImageShape& shape);
void check(const RandomSolarize& operation, const ImageShape& shape);
void check(const RandomPosterize& operation, const ImageShape& shape);
void check(const RandomEqualize& operation, const ImageShape& shape);
void check(const RandomAutocontrast& operation, const ImageShape& shape);
void check(const RandomInvert& operation, const ImageShape& shape);
void check(const RandomAdjustSharpness& operation, const ImageShape& shape);
void check(const TrivialAugmentWide& operation, const ImageShape& shape);
void check(const RandAugment& operation, const ImageShape& shape);
void check(const AutoAugment& operation, const ImageShape& shape);

}  // namespace precache::augment
