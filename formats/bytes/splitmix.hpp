// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "formats/bytes/host_device.hpp"

namespace precache {

inline constexpr std::uint64_t kGoldenGamma = 0x9e3779b97f4a7c15U;

/// The output function of SplitMix64: every bit of the result depends on every bit of `x`.
[[nodiscard]] PRECACHE_HOST_DEVICE constexpr std::uint64_t splitmix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

}  // namespace precache
