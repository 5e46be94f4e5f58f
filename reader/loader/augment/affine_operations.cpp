// SPDX-License-Identifier: Apache-2.0
#include "reader/loader/augment/affine_operations.hpp"

#include <cmath>
#include <cstdint>
#include <vector>

namespace precache {
namespace {

std::optional<augment::Point> point_of(const std::optional<std::array<double, 2>>& center) {
  if (!center) return std::nullopt;
  return augment::Point{(*center)[0], (*center)[1]};
}

/// Whole pixels, up to `share` of the size in both directions.
double shift(OperationRandom& random, double share, std::uint32_t size) {
  const double most = share * size;
  return std::nearbyint(random.uniform(-most, most));
}

}  // namespace

RandomRotationDraw choose(const RandomRotation& operation, OperationRandom& random,
                          const ImageShape&) {
  return {.degrees = random.uniform(operation.degrees[0], operation.degrees[1]),
          .center = point_of(operation.center),
          .sampling = {operation.interpolation, operation.fill}};
}

RandomAffineDraw choose(const RandomAffine& operation, OperationRandom& random,
                        const ImageShape& shape) {
  RandomAffineDraw draw{.sampling = {operation.interpolation, operation.fill}};
  augment::AffineMap& map = draw.map;
  map.center = point_of(operation.center);
  map.degrees = random.uniform(operation.degrees[0], operation.degrees[1]);
  if (operation.translate) {
    map.translate.x = shift(random, (*operation.translate)[0], shape.width);
    map.translate.y = shift(random, (*operation.translate)[1], shape.height);
  }
  if (operation.scale) map.scale = random.uniform((*operation.scale)[0], (*operation.scale)[1]);
  if (operation.shear) {
    map.shear.x = random.uniform((*operation.shear)[0], (*operation.shear)[1]);
    map.shear.y = random.uniform((*operation.shear)[2], (*operation.shear)[3]);
  }
  return draw;
}

void apply(const RandomRotationDraw& draw, PlanarImage& image, PlanarImage& spare) {
  augment::rotate(image, spare, draw.degrees, draw.center, draw.sampling);
}

void apply(const RandomAffineDraw& draw, PlanarImage& image, PlanarImage& spare) {
  augment::affine(image, spare, draw.map, draw.sampling);
}

DrawnValue shown(const RandomRotationDraw& draw) { return draw.degrees; }

DrawnValue shown(const RandomAffineDraw& draw) {
  const augment::AffineMap& map = draw.map;
  const auto whole = [](double value) { return DrawnValue(static_cast<std::int64_t>(value)); };
  return std::vector<DrawnValue>{
      map.degrees, std::vector<DrawnValue>{whole(map.translate.x), whole(map.translate.y)},
      map.scale, std::vector<DrawnValue>{map.shear.x, map.shear.y}};
}

}  // namespace precache
