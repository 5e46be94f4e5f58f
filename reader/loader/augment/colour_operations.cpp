// SPDX-License-Identifier: Apache-2.0
#include "reader/loader/augment/colour_operations.hpp"

#include <vector>

#include "reader/loader/augment/colour.hpp"

namespace precache {

ColorJitterDraw choose(const ColorJitter& operation, OperationRandom& random, const ImageShape&) {
  ColorJitterDraw draw{.order = random.permutation<4>()};
  const std::array<const std::optional<Range>*, 4> ranges{
      &operation.brightness, &operation.contrast, &operation.saturation, &operation.hue};
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    // Drawn in any case, so that a range does not depend on the others.
    const double share = random.uniform();
    const std::optional<Range>& range = *ranges[i];
    if (range) draw.factors[i] = (*range)[0] + ((*range)[1] - (*range)[0]) * share;
  }
  return draw;
}

void apply(const ColorJitterDraw& draw, PlanarImage& image, PlanarImage&) {
  for (const std::uint8_t change : draw.order) {
    const std::optional<double> factor = draw.factors[change];
    if (!factor) continue;
    if (change == 0) augment::adjust_brightness(image, *factor);
    if (change == 1) augment::adjust_contrast(image, *factor);
    if (change == 2) augment::adjust_saturation(image, *factor);
    if (change == 3) augment::adjust_hue(image, *factor);
  }
}

void apply(const ChanceDraw<RandomGrayscale>& draw, PlanarImage& image, PlanarImage&) {
  if (draw.applied) augment::to_grayscale(image);
}

void apply(const ChanceDraw<RandomSolarize>& draw, PlanarImage& image, PlanarImage&) {
  if (draw.applied) augment::solarize(image, draw.operation.threshold);
}

void apply(const ChanceDraw<RandomPosterize>& draw, PlanarImage& image, PlanarImage&) {
  if (draw.applied) augment::posterize(image, draw.operation.bits);
}

void apply(const ChanceDraw<RandomEqualize>& draw, PlanarImage& image, PlanarImage&) {
  if (draw.applied) augment::equalize(image);
}

void apply(const ChanceDraw<RandomAutocontrast>& draw, PlanarImage& image, PlanarImage&) {
  if (draw.applied) augment::autocontrast(image);
}

void apply(const ChanceDraw<RandomInvert>& draw, PlanarImage& image, PlanarImage&) {
  if (draw.applied) augment::invert(image);
}

void apply(const ChanceDraw<RandomAdjustSharpness>& draw, PlanarImage& image, PlanarImage& spare) {
  if (draw.applied) augment::adjust_sharpness(image, spare, draw.operation.factor);
}

DrawnValue shown(const ColorJitterDraw& draw) {
  std::vector<DrawnValue> order;
  for (const std::uint8_t change : draw.order) order.emplace_back(std::int64_t{change});
  std::vector<DrawnValue> result;
  result.emplace_back(std::move(order));
  for (const std::optional<double>& factor : draw.factors) {
    if (factor) {
      result.emplace_back(*factor);
    } else {
      result.emplace_back();
    }
  }
  return result;
}

}  // namespace precache
