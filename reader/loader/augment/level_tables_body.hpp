// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "formats/bytes/host_device.hpp"

/// The tables of `ImageOps.equalize` and `ImageOps.autocontrast`, entry by entry.
namespace precache::augment {

/// The number of pixels for one level of the equalized image; 0: the image stays as it is,
/// for example because it has only one value.
PRECACHE_HOST_DEVICE inline std::uint64_t equalizing_step(const std::uint32_t* histogram) {
  std::uint64_t pixels = 0;
  std::uint32_t of_highest = 0;
  for (std::uint32_t value = 0; value < 256; ++value) {
    pixels += histogram[value];
    if (histogram[value] != 0) of_highest = histogram[value];
  }
  return (pixels - of_highest) / 255;
}

/// The level of the value that has `below` pixels below it, and half a step.
PRECACHE_HOST_DEVICE inline std::uint8_t equalized(std::uint64_t below, std::uint64_t step) {
  const std::uint64_t level = below / step;
  return static_cast<std::uint8_t>(level < 255 ? level : 255);
}

/// Stretches the values from `low` to `high`.  REQUIRES: low < high.
PRECACHE_HOST_DEVICE inline std::uint8_t stretched(std::uint32_t value, std::uint8_t low,
                                                   std::uint8_t high) {
  const double scale = 255.0 / (high - low);
  const double offset = -static_cast<double>(low) * scale;
  const double level = static_cast<double>(value) * scale + offset;
  return static_cast<std::uint8_t>(level < 0 ? 0 : level > 255 ? 255 : level);
}

}  // namespace precache::augment
