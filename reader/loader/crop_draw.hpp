// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "formats/bytes/host_device.hpp"
#include "reader/loader/order_body.hpp"
#include "reader/loader/pixel_kernels.hpp"

namespace precache {

/// The choices of a crop and a flip.
struct CropRule {
  std::uint32_t free_rows = 0;  // of the stored tensor, outside the crop
  std::uint32_t free_columns = 0;
  bool is_centre = false;
  bool may_flip = false;
};

/// Half of a margin, rounded to even like torchvision's centre crop.
PRECACHE_HOST_DEVICE constexpr std::uint32_t half(std::uint32_t margin) {
  return margin / 2 + (margin % 2 == 1 && margin / 2 % 2 == 1 ? 1 : 0);
}

/// The draw of a sample, a function of (seed, epoch, sample).
PRECACHE_HOST_DEVICE inline AugmentationDraw draw_crop(const CropRule& rule, std::uint64_t seed,
                                                       std::uint64_t epoch, std::uint64_t sample) {
  SampleRandom random(seed, epoch, sample);
  // All three are always drawn, so that a crop does not change which samples are flipped.
  const auto y = static_cast<std::uint32_t>(random.below(std::uint64_t{rule.free_rows} + 1));
  const auto x = static_cast<std::uint32_t>(random.below(std::uint64_t{rule.free_columns} + 1));
  const bool flip = random.below(2) == 1;
  return {rule.is_centre ? half(rule.free_rows) : y, rule.is_centre ? half(rule.free_columns) : x,
          flip && rule.may_flip};
}

}  // namespace precache
