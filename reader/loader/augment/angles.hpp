// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Functions of angles that are the same on every machine: rounded once, from about 100 bits.
/// Those of the C library may differ in the last bit between versions and machines, and then a
/// pixel on an edge would move. They need `-ffp-contract=off`.
namespace precache::augment {

struct SineCosine {
  double sine;
  double cosine;
};

/// REQUIRES: |radians| < 1e6.
[[nodiscard]] SineCosine sine_cosine(double radians);
/// REQUIRES: |radians| < 1e6.
[[nodiscard]] double tangent(double radians);
/// REQUIRES: |x| <= 1.
[[nodiscard]] double arc_tangent(double x);

}  // namespace precache::augment
