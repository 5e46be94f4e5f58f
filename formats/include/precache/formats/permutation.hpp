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
  Permutation(std::uint64_t size, std::uint64_t key);
  /// REQUIRES: position < size.
  [[nodiscard]] std::uint64_t operator()(std::uint64_t position) const;
  /// The position of a value.  REQUIRES: value < size.
  [[nodiscard]] std::uint64_t position_of(std::uint64_t value) const;

 private:
  static constexpr int kRounds = 6;
  std::uint64_t size_;
  int low_bits_;   // of the right half
  int high_bits_;  // of the left half; equal or one less
  std::uint64_t round_keys_[kRounds];
};

}  // namespace precache
