// SPDX-License-Identifier: Apache-2.0
#include "reader/loader/augment/angles.hpp"

#include "reader/loader/augment/angles_body.hpp"

namespace precache::augment {

SineCosine sine_cosine(double radians) { return precise_sine_cosine(radians); }

double tangent(double radians) { return precise_tangent(radians); }

double arc_tangent(double x) {
  if (x == 0) return x;
  // Newton's steps on sin(y) - x cos(y), whose derivative is near 1 / cos(y) there.
  using angles::Pair;
  Pair y{x / (1 + 0.28 * x * x), 0};
  for (int step = 0; step < 5; ++step) {
    const angles::PairSineCosine at = angles::precise(y);
    const Pair excess = at.sine - Pair{x, 0} * at.cosine;
    y = y - excess / (at.cosine + Pair{x, 0} * at.sine);
  }
  return y.high;
}

}  // namespace precache::augment
