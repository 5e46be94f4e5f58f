// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "formats/bytes/host_device.hpp"
#include "formats/bytes/splitmix.hpp"
#include "precache/formats/permutation.hpp"

/// The arithmetic of Permutation, which GPUs run too.
namespace precache::permutation {

PRECACHE_HOST_DEVICE constexpr std::uint64_t mask(int bits) {
  return (std::uint64_t{1} << bits) - 1;
}

PRECACHE_HOST_DEVICE inline Permutation::Keys keys_of(std::uint64_t size, std::uint64_t key) {
  int bits = 2;
  while (size != 0 && bits < 64 && (size - 1) >> bits != 0) ++bits;
  Permutation::Keys keys;
  keys.size = size;
  keys.low_bits = (bits + 1) / 2;
  keys.high_bits = bits / 2;
  for (int round = 0; round < Permutation::kRounds; ++round) {
    keys.rounds[round] = splitmix(key + static_cast<std::uint64_t>(round + 1) * kGoldenGamma);
  }
  return keys;
}

/// REQUIRES: position < keys.size.
PRECACHE_HOST_DEVICE inline std::uint64_t value_at(const Permutation::Keys& keys,
                                                   std::uint64_t position) {
  // A Feistel network permutes [0, 2^bits); walking its cycle until a value falls below the size
  // restricts it to [0, size). Fewer than two steps on average, as 2^bits < 2 * size (for size >
  // 2).
  std::uint64_t value = position;
  do {
    for (int round = 0; round < Permutation::kRounds; round += 2) {
      std::uint64_t high = value >> keys.low_bits;
      std::uint64_t low = value & mask(keys.low_bits);
      high ^= splitmix(low ^ keys.rounds[round]) & mask(keys.high_bits);
      low ^= splitmix(high ^ keys.rounds[round + 1]) & mask(keys.low_bits);
      value = high << keys.low_bits | low;
    }
  } while (value >= keys.size);
  return value;
}

}  // namespace precache::permutation
