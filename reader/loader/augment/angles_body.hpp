// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "formats/bytes/host_device.hpp"
#include "reader/loader/augment/angles.hpp"

/// The definitions of angles.hpp, in double-double arithmetic, for GPUs too.
/// REQUIRES: no contraction to multiply-adds (-ffp-contract=off, -fmad=false).
namespace precache::augment {
namespace angles {

/// The unevaluated sum of two doubles, the second at most half of the last bit of the first.
struct Pair {
  double high = 0;
  double low = 0;
};

/// REQUIRES: |a| >= |b|, or a is 0.
PRECACHE_HOST_DEVICE constexpr Pair quick_sum(double a, double b) {
  const double sum = a + b;
  return {sum, b - (sum - a)};
}

PRECACHE_HOST_DEVICE constexpr Pair exact_sum(double a, double b) {
  const double sum = a + b;
  const double part = sum - a;
  return {sum, (a - (sum - part)) + (b - part)};
}

/// Dekker's product: the halves of a double have 26 bits, so their products are exact.
PRECACHE_HOST_DEVICE constexpr Pair exact_product(double a, double b) {
  constexpr double kSplit = 0x1p27 + 1;
  const double wide_a = kSplit * a;
  const double wide_b = kSplit * b;
  const double high_a = wide_a - (wide_a - a);
  const double high_b = wide_b - (wide_b - b);
  const double low_a = a - high_a;
  const double low_b = b - high_b;
  const double product = a * b;
  return {product, ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b};
}

PRECACHE_HOST_DEVICE constexpr Pair operator+(Pair a, Pair b) {
  const Pair high = exact_sum(a.high, b.high);
  const Pair low = exact_sum(a.low, b.low);
  const Pair sum = quick_sum(high.high, high.low + low.high);
  return quick_sum(sum.high, sum.low + low.low);
}

PRECACHE_HOST_DEVICE constexpr Pair operator-(Pair a) { return {-a.high, -a.low}; }
PRECACHE_HOST_DEVICE constexpr Pair operator-(Pair a, Pair b) { return a + -b; }

PRECACHE_HOST_DEVICE constexpr Pair operator*(Pair a, Pair b) {
  const Pair product = exact_product(a.high, b.high);
  return quick_sum(product.high, product.low + (a.high * b.low + a.low * b.high));
}

PRECACHE_HOST_DEVICE constexpr Pair operator/(Pair a, Pair b) {
  const double first = a.high / b.high;
  const Pair rest = a - b * Pair{first, 0};
  const double second = rest.high / b.high;
  const Pair last = rest - b * Pair{second, 0};
  return quick_sum(first, second) + Pair{last.high / b.high, 0};
}

/// pi/2 in three parts of 53 bits each.
constexpr double kQuarterHigh = 0x1.921fb54442d18p+0;
constexpr double kQuarterMiddle = 0x1.1a62633145c07p-54;
constexpr double kQuarterLow = -0x1.f1976b7ed8fbcp-110;

/// 1/n!.
PRECACHE_HOST_DEVICE constexpr Pair inverse_factorial(int n) {
  Pair result{1, 0};
  for (int i = 2; i <= n; ++i) result = result / Pair{static_cast<double>(i), 0};
  return result;
}

/// The sum of x^n / n! with alternating signs for n = kFirst, kFirst + 2, ..., kLast, which is
/// added up from its end. A template, so that device code has the terms as constants.
template <int kFirst, int kLast>
PRECACHE_HOST_DEVICE inline Pair series_from(Pair square, Pair sum) {
  if constexpr (kLast == kFirst) {
    return sum;
  } else {
    constexpr Pair kTerm = inverse_factorial(kLast - 2);
    return series_from<kFirst, kLast - 2>(square, kTerm - square * sum);
  }
}

/// For kLast = 26 and 27 the next term at pi/4 is below 2^-106.
template <int kFirst, int kLast>
PRECACHE_HOST_DEVICE inline Pair series(Pair square) {
  constexpr Pair kTerm = inverse_factorial(kLast);
  return series_from<kFirst, kLast>(square, kTerm);
}

struct PairSineCosine {
  Pair sine;
  Pair cosine;
};

/// Shifts the angle by quarter turns into the middle one.
PRECACHE_HOST_DEVICE inline PairSineCosine precise(Pair radians) {
  const double quarters = nearbyint(radians.high / kQuarterHigh);
  const Pair turned = exact_product(quarters, kQuarterHigh);
  const Pair finer = exact_product(quarters, kQuarterMiddle);
  const Pair x = ((radians - turned) - finer) - Pair{quarters * kQuarterLow, 0};
  const Pair square = x * x;
  const Pair sine = x * series<1, 27>(square);
  const Pair cosine = series<0, 26>(square);
  switch (static_cast<long long>(quarters) & 3) {
    case 0:
      return {sine, cosine};
    case 1:
      return {cosine, -sine};
    case 2:
      return {-sine, -cosine};
    default:
      return {-cosine, sine};
  }
}

}  // namespace angles

PRECACHE_HOST_DEVICE inline SineCosine precise_sine_cosine(double radians) {
  if (radians == 0) return {radians, 1};  // keeps the sign of a zero
  const angles::PairSineCosine result = angles::precise({radians, 0});
  return {result.sine.high, result.cosine.high};
}

PRECACHE_HOST_DEVICE inline double precise_tangent(double radians) {
  if (radians == 0) return radians;
  const angles::PairSineCosine result = angles::precise({radians, 0});
  return (result.sine / result.cosine).high;
}

}  // namespace precache::augment
