// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "formats/bytes/host_device.hpp"

/// Functions of one fixed sequence of additions, multiplications and divisions each. The results of
/// the C library differ in the last bit from one machine to another, and so would draws.
/// REQUIRES: no contraction to multiply-adds (-ffp-contract=off, -fmad=false).
namespace precache::augment {

// __builtin_bit_cast: device code cannot call std::bit_cast.
namespace exponential {
constexpr double kLn2High = 0x1.62e42fefa38p-1;   // few enough bits for exact products
constexpr double kLn2Low = 0x1.ef35793c7673p-45;  // the rest of the logarithm of 2
constexpr double kInverseLn2 = 0x1.71547652b82fep0;
constexpr int kMantissaBits = 52;
constexpr std::uint64_t kBias = 1023;
}  // namespace exponential

/// Python's round(): ties to even.  REQUIRES: 0 <= x < 2^51.
PRECACHE_HOST_DEVICE constexpr double round_half_even(double x) { return (x + 0x1p52) - 0x1p52; }

/// e to the power of x, to about one unit in the last place.  REQUIRES: -700 <= x <= 700.
PRECACHE_HOST_DEVICE constexpr double exponential_of(double x) {
  using namespace exponential;
  const double steps = x * kInverseLn2;
  const auto power = static_cast<std::int64_t>(steps < 0 ? steps - 0.5 : steps + 0.5);
  const double n = static_cast<double>(power);
  const double rest = (x - n * kLn2High) - n * kLn2Low;  // at most about ln(2) / 2
  double sum = 1.0;
  for (int i = 14; i > 0; --i) sum = 1.0 + sum * rest / i;  // the Taylor series, from its end
  const auto scale = (static_cast<std::uint64_t>(power) + kBias) << kMantissaBits;
  return sum * __builtin_bit_cast(double, scale);
}

/// The natural logarithm, to about one unit in the last place.  REQUIRES: x is positive, finite and
/// not subnormal.
PRECACHE_HOST_DEVICE constexpr double logarithm_of(double x) {
  using namespace exponential;
  constexpr double kSqrtHalf = 0x1.6a09e667f3bcdp-1;
  const auto bits = __builtin_bit_cast(std::uint64_t, x);
  auto power = static_cast<std::int64_t>(bits >> kMantissaBits) - static_cast<std::int64_t>(kBias);
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << kMantissaBits) - 1);
  double mantissa = __builtin_bit_cast(double, fraction | kBias << kMantissaBits);  // in [1, 2)
  if (mantissa * 0.5 > kSqrtHalf) {
    mantissa *= 0.5;
    ++power;
  }
  // log(m) = 2 artanh((m - 1) / (m + 1))
  const double ratio = (mantissa - 1.0) / (mantissa + 1.0);
  const double square = ratio * ratio;
  double sum = 0;
  for (int i = 25; i > 1; i -= 2) sum = square * (1.0 / i + sum);
  const double n = static_cast<double>(power);
  return n * kLn2High + (n * kLn2Low + 2.0 * ratio * (1.0 + sum));
}

}  // namespace precache::augment
