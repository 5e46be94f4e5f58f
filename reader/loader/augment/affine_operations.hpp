// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "precache/reader/augmentation.hpp"
#include "reader/loader/augment/affine.hpp"
#include "reader/loader/augment/affine_draw_body.hpp"
#include "reader/loader/augment/operation_random.hpp"
#include "reader/loader/augment/planar_image.hpp"

/// RandomRotation and RandomAffine: what they draw, and what they do to pixels. A draw borrows the
/// fill of its operation.
namespace precache {

struct RandomRotationDraw {
  double degrees = 0;
  std::optional<augment::Point> center{};
  augment::Sampling sampling{};
};

/// torchvision's `RandomAffine.get_params`.
struct RandomAffineDraw {
  augment::AffineMap map{};
  augment::Sampling sampling{};
};

/// All that RandomAffine draws from.
[[nodiscard]] augment::AffineRanges ranges_of(const RandomAffine& operation);

[[nodiscard]] RandomRotationDraw choose(const RandomRotation& operation, OperationRandom& random,
                                        const ImageShape& shape);
[[nodiscard]] RandomAffineDraw choose(const RandomAffine& operation, OperationRandom& random,
                                      const ImageShape& shape);

void apply(const RandomRotationDraw& draw, PlanarImage& image, PlanarImage& spare);
void apply(const RandomAffineDraw& draw, PlanarImage& image, PlanarImage& spare);

/// The angle.
[[nodiscard]] DrawnValue shown(const RandomRotationDraw& draw);
/// (angle, (x, y), scale, (shear of x, shear of y)).
[[nodiscard]] DrawnValue shown(const RandomAffineDraw& draw);

}  // namespace precache
