// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

#include "formats/bytes/host_device.hpp"
#include "reader/loader/augment/angles_body.hpp"

/// The matrices of rotations and affine maps, with torchvision's arithmetic, for GPUs too.
/// REQUIRES: no contraction to multiply-adds (-ffp-contract=off, -fmad=false).
namespace precache::augment {

struct Point {
  double x = 0;
  double y = 0;
};

/// From a point of the result to one of the source:
/// x = at[0] x' + at[1] y' + at[2], and y = at[3] x' + at[4] y' + at[5].
struct AffineMatrix {
  double at[6];
};

constexpr double kRadians = 3.141592653589793238 / 180.0;

/// A line of the matrix: 0 for x, 3 for y.
PRECACHE_HOST_DEVICE inline double along(const AffineMatrix& matrix, int line, double x, double y) {
  return x * matrix.at[line] + y * matrix.at[line + 1] + matrix.at[line + 2];
}

/// Rounds to 15 decimals like Python: half to even, of the exact value.  REQUIRES: |value| <= 1.
PRECACHE_HOST_DEVICE inline double rounded_to_15_decimals(double value) {
  constexpr std::uint64_t kUnits = 1'000'000'000'000'000;
  constexpr int kMantissaBits = 52;
  const auto bits = __builtin_bit_cast(std::uint64_t, value);
  const int power = static_cast<int>(bits >> kMantissaBits & 0x7ff);
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << kMantissaBits) - 1);
  const std::uint64_t sign = bits & std::uint64_t{1} << 63;
  const int shift = 1023 + kMantissaBits - power;  // value = mantissa / 2^shift
  std::uint64_t units = 0;
  if (power != 0 && shift < 104) {  // the product below has 103 bits
    const unsigned __int128 product =
        static_cast<unsigned __int128>(fraction | std::uint64_t{1} << kMantissaBits) * kUnits;
    units = static_cast<std::uint64_t>(product >> shift);
    const unsigned __int128 rest = product - (static_cast<unsigned __int128>(units) << shift);
    const unsigned __int128 half = static_cast<unsigned __int128>(1) << (shift - 1);
    if (rest > half || (rest == half && units % 2 == 1)) ++units;
  }
  // Both are exact, so the division rounds once.
  const double result = static_cast<double>(units) / static_cast<double>(kUnits);
  return __builtin_bit_cast(double, __builtin_bit_cast(std::uint64_t, result) | sign);
}

/// torchvision's `_get_inverse_affine_matrix`; angles in degrees.
PRECACHE_HOST_DEVICE inline AffineMatrix inverse_affine_matrix(double degrees, Point translate,
                                                               double scale, Point shear,
                                                               Point center) {
  const double angle = degrees * kRadians;
  const double shear_x = shear.x * kRadians;
  const double shear_y = shear.y * kRadians;
  const SineCosine turned = precise_sine_cosine(angle);
  const SineCosine inclined = precise_sine_cosine(angle - shear_y);
  const double cosine_y = precise_sine_cosine(shear_y).cosine;
  const double tangent_x = precise_tangent(shear_x);
  const double a = inclined.cosine / cosine_y;
  const double b = -inclined.cosine * tangent_x / cosine_y - turned.sine;
  const double c = inclined.sine / cosine_y;
  const double d = -inclined.sine * tangent_x / cosine_y + turned.cosine;
  AffineMatrix matrix{{d / scale, -b / scale, 0.0 / scale, -c / scale, a / scale, 0.0 / scale}};
  const double x = -center.x - translate.x;
  const double y = -center.y - translate.y;
  matrix.at[2] += matrix.at[0] * x + matrix.at[1] * y;
  matrix.at[5] += matrix.at[3] * x + matrix.at[4] * y;
  matrix.at[2] += center.x;
  matrix.at[5] += center.y;
  return matrix;
}

/// Python's remainder of an angle by 360, which is not negative.
PRECACHE_HOST_DEVICE inline double whole_turn(double degrees) {
  const double angle = fmod(degrees, 360.0);
  return angle < 0 ? angle + 360.0 : angle;
}

/// The matrix of torchvision's `functional.rotate`; `angle` is a whole_turn().
PRECACHE_HOST_DEVICE inline AffineMatrix rotation_matrix(double angle, Point center) {
  const SineCosine at = precise_sine_cosine(-(angle * kRadians));
  AffineMatrix matrix{{rounded_to_15_decimals(at.cosine), rounded_to_15_decimals(at.sine), 0,
                       rounded_to_15_decimals(-at.sine), rounded_to_15_decimals(at.cosine), 0}};
  const double x = along(matrix, 0, -center.x, -center.y);
  const double y = along(matrix, 3, -center.x, -center.y);
  matrix.at[2] = x + center.x;
  matrix.at[5] = y + center.y;
  return matrix;
}

/// Whether both coordinates of all corners of an image are nearer to 0 than `limit`.
PRECACHE_HOST_DEVICE inline bool corners_below(const AffineMatrix& matrix, std::uint32_t height,
                                               std::uint32_t width, double limit) {
  for (int corner = 0; corner < 4; ++corner) {
    const double x = corner % 2 == 0 ? 0.0 : static_cast<double>(width);
    const double y = corner < 2 ? 0.0 : static_cast<double>(height);
    if (!(fabs(along(matrix, 0, x, y)) < limit && fabs(along(matrix, 3, x, y)) < limit)) {
      return false;
    }
  }
  return true;
}

}  // namespace precache::augment
