// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "reader/loader/augment/warp_kernels.hpp"

namespace precache::augment {

/// The first column of [0, width) from which on `reached(column)` holds, or `width`; `guess` is
/// near it.  REQUIRES: where it holds once, it holds for all later columns.
template <typename Reached>
std::uint32_t first_column(std::uint32_t width, double guess, const Reached& reached) {
  std::uint32_t column = !(guess > 0)     ? 0
                         : guess >= width ? width
                                          : static_cast<std::uint32_t>(guess);
  while (column > 0 && reached(column - 1)) --column;
  while (column < width && !reached(column)) ++column;
  return column;
}

/// The columns whose coordinate `at(column)` is in [0, limit). The division only guesses where they
/// begin and end; the coordinates themselves, with their rounding, decide.
/// REQUIRES: the coordinates are finite, and rise with a positive `slope` and fall with a negative.
template <typename At>
Columns inside_columns(std::uint32_t width, double limit, double slope, const At& at) {
  const double start = at(0);
  if (slope == 0) return {0, start >= 0 && start < limit ? width : 0};
  const double zero = -start / slope;
  const double end = (limit - start) / slope;
  if (slope > 0) {
    return {first_column(width, zero, [&](std::uint32_t x) { return at(x) >= 0; }),
            first_column(width, end, [&](std::uint32_t x) { return at(x) >= limit; })};
  }
  return {first_column(width, end, [&](std::uint32_t x) { return at(x) < limit; }),
          first_column(width, zero, [&](std::uint32_t x) { return at(x) < 0; })};
}

/// Columns in both.
inline Columns both(Columns a, Columns b) {
  const Columns result{std::max(a.begin, b.begin), std::min(a.end, b.end)};
  return result.begin < result.end ? result : Columns{0, 0};
}

}  // namespace precache::augment
