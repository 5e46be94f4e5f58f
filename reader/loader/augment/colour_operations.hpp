// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "precache/reader/augmentation.hpp"
#include "reader/loader/augment/operation_random.hpp"
#include "reader/loader/augment/planar_image.hpp"

/// The colour operations of an augmentation: what they draw, and what they do to pixels.
namespace precache {

/// Whether an operation without random parameters is applied.
template <typename Operation>
struct ChanceDraw {
  bool applied = false;
  Operation operation{};
};

/// torchvision's `ColorJitter.get_params`.
struct ColorJitterDraw {
  std::array<std::uint8_t, 4> order{};  // 0 brightness, 1 contrast, 2 saturation, 3 hue
  std::array<std::optional<double>, 4> factors{};
};

/// An operation that is applied with probability p.
template <typename Operation>
requires requires(const Operation& operation) { operation.p; }
[[nodiscard]] ChanceDraw<Operation> choose(const Operation& operation, OperationRandom& random,
                                           const ImageShape&) {
  return {random.chance(operation.p), operation};
}
[[nodiscard]] ColorJitterDraw choose(const ColorJitter& operation, OperationRandom& random,
                                     const ImageShape& shape);

void apply(const ColorJitterDraw& draw, PlanarImage& image, PlanarImage& spare);
void apply(const ChanceDraw<RandomGrayscale>& draw, PlanarImage& image, PlanarImage& spare);
void apply(const ChanceDraw<RandomSolarize>& draw, PlanarImage& image, PlanarImage& spare);
void apply(const ChanceDraw<RandomPosterize>& draw, PlanarImage& image, PlanarImage& spare);
void apply(const ChanceDraw<RandomEqualize>& draw, PlanarImage& image, PlanarImage& spare);
void apply(const ChanceDraw<RandomAutocontrast>& draw, PlanarImage& image, PlanarImage& spare);
void apply(const ChanceDraw<RandomInvert>& draw, PlanarImage& image, PlanarImage& spare);
void apply(const ChanceDraw<RandomAdjustSharpness>& draw, PlanarImage& image, PlanarImage& spare);

/// The draw for people: (order, brightness, contrast, saturation, hue), with nothing for what is
/// left as it is.
[[nodiscard]] DrawnValue shown(const ColorJitterDraw& draw);
/// Whether it is applied.
template <typename Operation>
[[nodiscard]] DrawnValue shown(const ChanceDraw<Operation>& draw) {
  return draw.applied;
}

}  // namespace precache
