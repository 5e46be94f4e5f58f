// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace precache {

/// A keyed permutation of [0, size): a shuffle without memory and with random access.
///
/// docs/formats/permutation.md specifies it bit by bit, and it is frozen: datasets and training
/// runs depend on it.
class Permutation {
 public:
  static constexpr int kRounds = 6;
  /// All that a permutation is made of; it can be copied to a GPU.
  struct Keys {
    std::uint64_t size = 0;
    int low_bits = 0;   // of the right half
    int high_bits = 0;  // of the left half; equal or one less
    std::uint64_t rounds[kRounds] = {};
  };

  /// Another key gives another order. `size` may be 0.
  Permutation(std::uint64_t size, std::uint64_t key);
  /// REQUIRES: position < size.
  [[nodiscard]] std::uint64_t operator()(std::uint64_t position) const;
  /// The position of a value.  REQUIRES: value < size.
  [[nodiscard]] std::uint64_t position_of(std::uint64_t value) const;
  [[nodiscard]] const Keys& keys() const { return keys_; }

 private:
  Keys keys_;
};

}  // namespace precache
