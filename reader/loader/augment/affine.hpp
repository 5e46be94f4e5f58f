// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "precache/reader/augmentation.hpp"
#include "reader/loader/augment/affine_matrix_body.hpp"
#include "reader/loader/augment/planar_image.hpp"

/// Rotations and affine maps, with the pixels of torchvision's path through Pillow 13.
/// Thread-safe: the functions use nothing but their arguments.
namespace precache::augment {

/// torchvision's parameters of an affine map, applied around `center` (none: of the image).
struct AffineMap {
  double degrees = 0;  // clockwise
  Point translate{};   // in pixels
  double scale = 1;
  Point shear{};  // in degrees
  std::optional<Point> center{};
};

/// How pixels are found, and the value of those that come from outside.
struct Sampling {
  Interpolation interpolation = Interpolation::kNearest;
  std::span<const std::uint8_t> fill{};  // none: 0; one for all channels; or one for each
};

/// torchvision's `_get_inverse_affine_matrix`.
[[nodiscard]] AffineMatrix inverse_matrix(const AffineMap& map, Point center);

/// `Image.transform(AFFINE)`. Loses the content of `spare`.
/// REQUIRES: the interpolation is nearest or bilinear.
void transform(PlanarImage& image, PlanarImage& spare, const AffineMatrix& matrix,
               const Sampling& sampling);
/// `functional.affine`.
void affine(PlanarImage& image, PlanarImage& spare, const AffineMap& map, const Sampling& sampling);
/// `functional.rotate`: counter-clockwise, without a change of the size.
void rotate(PlanarImage& image, PlanarImage& spare, double degrees, std::optional<Point> center,
            const Sampling& sampling);

}  // namespace precache::augment
