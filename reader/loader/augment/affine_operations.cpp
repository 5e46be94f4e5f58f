// SPDX-License-Identifier: Apache-2.0
#include "reader/loader/augment/affine_operations.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace precache {
namespace {

std::optional<augment::Point> point_of(const std::optional<std::array<double, 2>>& center) {
  if (!center) return std::nullopt;
  return augment::Point{(*center)[0], (*center)[1]};
}

}  // namespace

augment::AffineRanges ranges_of(const RandomAffine& operation) {
  augment::AffineRanges ranges;
  std::ranges::copy(operation.degrees, ranges.degrees);
  if (operation.translate) std::ranges::copy(*operation.translate, ranges.translate);
  if (operation.scale) std::ranges::copy(*operation.scale, ranges.scale);
  if (operation.shear) std::ranges::copy(*operation.shear, ranges.shear);
  ranges.has_translate = operation.translate.has_value();
  ranges.has_scale = operation.scale.has_value();
  ranges.has_shear = operation.shear.has_value();
  return ranges;
}

RandomRotationDraw choose(const RandomRotation& operation, OperationRandom& random,
                          const ImageShape&) {
  return {.degrees = random.uniform(operation.degrees[0], operation.degrees[1]),
          .center = point_of(operation.center),
          .sampling = {operation.interpolation, operation.fill}};
}

RandomAffineDraw choose(const RandomAffine& operation, OperationRandom& random,
                        const ImageShape& shape) {
  const augment::DrawnAffine drawn =
      augment::choose_affine(ranges_of(operation), random, shape.height, shape.width);
  return {
      .map = {drawn.degrees, drawn.translate, drawn.scale, drawn.shear, point_of(operation.center)},
      .sampling = {operation.interpolation, operation.fill}};
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
