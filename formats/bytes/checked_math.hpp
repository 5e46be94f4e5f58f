// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "precache/formats/error.hpp"

namespace precache {

/// Sums and products of sizes that come from a user or a file. Throw InvalidArgument when they do
/// not fit 64 bits.
[[nodiscard]] inline std::uint64_t checked_add(std::uint64_t a, std::uint64_t b) {
  std::uint64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) throw InvalidArgument("a size exceeds 64 bits");
  return sum;
}

[[nodiscard]] inline std::uint64_t checked_mul(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) throw InvalidArgument("a size exceeds 64 bits");
  return product;
}

/// `value` rounded up to a multiple of `unit`.
[[nodiscard]] inline std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
  return checked_add(value, unit - 1) / unit * unit;
}

}  // namespace precache
