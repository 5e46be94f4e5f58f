// SPDX-License-Identifier: Apache-2.0
#include "precache/formats/permutation.hpp"

#include <algorithm>
#include <bit>

namespace precache {
namespace {

// The output function of SplitMix64.
constexpr std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

constexpr std::uint64_t mask(int bits) { return (std::uint64_t{1} << bits) - 1; }

}  // namespace

Permutation::Permutation(std::uint64_t size, std::uint64_t key) : size_(size) {
  const int bits = std::max(2, static_cast<int>(std::bit_width(size == 0 ? 0 : size - 1)));
  low_bits_ = (bits + 1) / 2;
  high_bits_ = bits / 2;
  for (int round = 0; round < kRounds; ++round) {
    round_keys_[round] = mix(key + static_cast<std::uint64_t>(round + 1) * 0x9e3779b97f4a7c15U);
  }
}

std::uint64_t Permutation::operator()(std::uint64_t position) const {
  // A Feistel network permutes [0, 2^bits); walking its cycle until a value falls below size_
  // restricts it to [0, size). Fewer than two steps on average, as 2^bits < 2 * size (for size >
  // 2).
  std::uint64_t value = position;
  do {
    for (int round = 0; round < kRounds; round += 2) {
      std::uint64_t high = value >> low_bits_;
      std::uint64_t low = value & mask(low_bits_);
      high ^= mix(low ^ round_keys_[round]) & mask(high_bits_);
      low ^= mix(high ^ round_keys_[round + 1]) & mask(low_bits_);
      value = high << low_bits_ | low;
    }
  } while (value >= size_);
  return value;
}

}  // namespace precache
