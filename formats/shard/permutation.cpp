// SPDX-License-Identifier: Apache-2.0
#include "precache/formats/permutation.hpp"

#include "formats/shard/permutation_body.hpp"

namespace precache {

Permutation::Permutation(std::uint64_t size, std::uint64_t key)
    : keys_(permutation::keys_of(size, key)) {}

std::uint64_t Permutation::operator()(std::uint64_t position) const {
  return permutation::value_at(keys_, position);
}

std::uint64_t Permutation::position_of(std::uint64_t value) const {
  using permutation::mask;
  // The walk of value_at() backwards: the rounds undo themselves in reverse order.
  std::uint64_t position = value;
  do {
    for (int round = kRounds - 2; round >= 0; round -= 2) {
      std::uint64_t high = position >> keys_.low_bits;
      std::uint64_t low = position & mask(keys_.low_bits);
      low ^= splitmix(high ^ keys_.rounds[round + 1]) & mask(keys_.low_bits);
      high ^= splitmix(low ^ keys_.rounds[round]) & mask(keys_.high_bits);
      position = high << keys_.low_bits | low;
    }
  } while (position >= keys_.size);
  return position;
}

}  // namespace precache
