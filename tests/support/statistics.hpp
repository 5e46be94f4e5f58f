// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace precache::test {

/// True if the values are [0, size) in some order.
inline bool is_bijection(std::span<const std::uint64_t> values) {
  std::vector<bool> seen(values.size());
  for (const auto value : values) {
    if (value >= values.size() || seen[value]) return false;
    seen[value] = true;
  }
  return true;
}

/// Sum of (observed - expected)^2 / expected, in standard deviations from the expectation.
/// `bound` counts the sums that are fixed beforehand.
inline double deviation(std::span<const std::uint64_t> counts, double expected,
                        std::size_t bound = 1) {
  double sum = 0;
  for (const auto count : counts) {
    const double difference = static_cast<double>(count) - expected;
    sum += difference * difference / expected;
  }
  const auto freedom = static_cast<double>(counts.size() - bound);
  return (sum - freedom) / std::sqrt(2 * freedom);
}

/// Pearson's; for unrelated values its deviation is 1 / sqrt(size - 1).
inline double correlation(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b) {
  const auto size = static_cast<double>(a.size());
  double mean_a = 0;
  double mean_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    mean_a += static_cast<double>(a[i]) / size;
    mean_b += static_cast<double>(b[i]) / size;
  }
  double ab = 0;
  double aa = 0;
  double bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double from_a = static_cast<double>(a[i]) - mean_a;
    const double from_b = static_cast<double>(b[i]) - mean_b;
    ab += from_a * from_b;
    aa += from_a * from_a;
    bb += from_b * from_b;
  }
  return ab / std::sqrt(aa * bb);
}

}  // namespace precache::test
