// SPDX-License-Identifier: Apache-2.0
#include "precache/formats/permutation.hpp"

#include <algorithm>
#include <bit>

#include "formats/bytes/splitmix.hpp"

namespace precache {
namespace {

constexpr std::uint64_t mask(int bits) { return (std::uint64_t{1} << bits) - 1; }

}  // namespace

Permutation::Permutation(std::uint64_t size, std::uint64_t key) : size_(size) {
  const int bits = std::max(2, static_cast<int>(std::bit_width(size == 0 ? 0 : size - 1)));
  low_bits_ = (bits + 1) / 2;
  high_bits_ = bits / 2;
  for (int round = 0; round < kRounds; ++round) {
    round_keys_[round] = splitmix(key + static_cast<std::uint64_t>(round + 1) * kGoldenGamma);
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
      high ^= splitmix(low ^ round_keys_[round]) & mask(high_bits_);
      low ^= splitmix(high ^ round_keys_[round + 1]) & mask(low_bits_);
      value = high << low_bits_ | low;
    }
  } while (value >= size_);
  return value;
}

std::uint64_t Permutation::position_of(std::uint64_t value) const {
  // The same walk backwards: the rounds undo themselves in reverse order.
  std::uint64_t position = value;
  do {
    for (int round = kRounds - 2; round >= 0; round -= 2) {
      std::uint64_t high = position >> low_bits_;
      std::uint64_t low = position & mask(low_bits_);
      low ^= splitmix(high ^ round_keys_[round + 1]) & mask(low_bits_);
      high ^= splitmix(low ^ round_keys_[round]) & mask(high_bits_);
      position = high << low_bits_ | low;
    }
  } while (position >= size_);
  return position;
}

}  // namespace precache
