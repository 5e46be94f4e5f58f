// SPDX-License-Identifier: Apache-2.0
#include "reader/loader/augment/angles.hpp"

#include <array>
#include <cmath>

namespace precache::augment {
namespace {

/// The unevaluated sum of two doubles, the second at most half of the last bit of the first.
struct Pair {
  double high = 0;
  double low = 0;
};

/// REQUIRES: |a| >= |b|, or a is 0.
constexpr Pair quick_sum(double a, double b) {
  const double sum = a + b;
  return {sum, b - (sum - a)};
}

constexpr Pair exact_sum(double a, double b) {
  const double sum = a + b;
  const double part = sum - a;
  return {sum, (a - (sum - part)) + (b - part)};
}

/// Dekker's product: the halves of a double have 26 bits, so their products are exact.
constexpr Pair exact_product(double a, double b) {
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

constexpr Pair operator+(Pair a, Pair b) {
  const Pair high = exact_sum(a.high, b.high);
  const Pair low = exact_sum(a.low, b.low);
  const Pair sum = quick_sum(high.high, high.low + low.high);
  return quick_sum(sum.high, sum.low + low.low);
}

constexpr Pair operator-(Pair a) { return {-a.high, -a.low}; }
constexpr Pair operator-(Pair a, Pair b) { return a + -b; }

constexpr Pair operator*(Pair a, Pair b) {
  const Pair product = exact_product(a.high, b.high);
  return quick_sum(product.high, product.low + (a.high * b.low + a.low * b.high));
}

constexpr Pair operator/(Pair a, Pair b) {
  const double first = a.high / b.high;
  const Pair rest = a - b * Pair{first, 0};
  const double second = rest.high / b.high;
  const Pair last = rest - b * Pair{second, 0};
  return quick_sum(first, second) + Pair{last.high / b.high, 0};
}

/// pi/2 in three parts: 53 bits each.
constexpr double kQuarter[3] = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54,
                                -0x1.f1976b7ed8fbcp-110};

/// 1/n! for n up to 27: the next term of a series at pi/4 is below 2^-106.
constexpr std::array<Pair, 28> kInverseFactorials = [] {
  std::array<Pair, 28> result{};
  result[0] = {1, 0};
  for (std::size_t n = 1; n < result.size(); ++n) {
    result[n] = result[n - 1] / Pair{static_cast<double>(n), 0};
  }
  return result;
}();

struct PairSineCosine {
  Pair sine;
  Pair cosine;
};

/// The sum of x^n / n! with alternating signs for n = first, first + 2, ...
Pair series(std::size_t first, Pair square) {
  std::size_t n = first == 1 ? 27 : 26;
  Pair sum = kInverseFactorials[n];
  while (n > first) {
    n -= 2;
    sum = kInverseFactorials[n] - square * sum;
  }
  return sum;
}

/// Shifts the angle by quarter turns into the middle one.
PairSineCosine precise(Pair radians) {
  const double quarters = std::nearbyint(radians.high / kQuarter[0]);
  const Pair turned = exact_product(quarters, kQuarter[0]);
  const Pair finer = exact_product(quarters, kQuarter[1]);
  const Pair x = ((radians - turned) - finer) - Pair{quarters * kQuarter[2], 0};
  const Pair square = x * x;
  const Pair sine = x * series(1, square);
  const Pair cosine = series(0, square);
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

}  // namespace

SineCosine sine_cosine(double radians) {
  if (radians == 0) return {radians, 1};  // keeps the sign of a zero
  const PairSineCosine result = precise({radians, 0});
  return {result.sine.high, result.cosine.high};
}

double tangent(double radians) {
  if (radians == 0) return radians;
  const PairSineCosine result = precise({radians, 0});
  return (result.sine / result.cosine).high;
}

double arc_tangent(double x) {
  if (x == 0) return x;
  // Newton's steps on sin(y) - x cos(y), whose derivative is near 1 / cos(y) there.
  Pair y{x / (1 + 0.28 * x * x), 0};
  for (int step = 0; step < 5; ++step) {
    const PairSineCosine at = precise(y);
    const Pair excess = at.sine - Pair{x, 0} * at.cosine;
    y = y - excess / (at.cosine + Pair{x, 0} * at.sine);
  }
  return y.high;
}

}  // namespace precache::augment
