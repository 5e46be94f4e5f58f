// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "precache/formats/tensor_spec.hpp"
#include "precache/reader/augmentation.hpp"
#include "reader/loader/augment/operation_random.hpp"
#include "reader/loader/augment/planar_image.hpp"

/// RandomErasing: a rectangle gets one value or noise, in the pixels or in the normalised numbers.
namespace precache {

/// torchvision's `RandomErasing.get_params`. Borrows the value of its operation.
struct RandomErasingDraw {
  bool applied = false;  // also false if ten rectangles did not fit
  std::uint32_t top = 0;
  std::uint32_t left = 0;
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  std::span<const double> value{};  // one for all channels, or one for each; ignored with `random`
  bool random = false;
  bool after_normalize = false;
  std::uint64_t noise = 0;  // the key of the noise
};

[[nodiscard]] RandomErasingDraw choose(const RandomErasing& operation, OperationRandom& random,
                                       const ImageShape& shape);

/// Erases pixels: values are truncated to whole numbers from 0 to 255, and noise is uniform. Does
/// nothing if the draw is for after `normalize`.
void apply(const RandomErasingDraw& draw, PlanarImage& image, PlanarImage& spare);
/// Erases numbers of a finished tensor, in its layout and type; noise is normal, with mean 0 and
/// variance 1. Does nothing if the draw is for pixels.
/// REQUIRES: `spec` is not of uint8, and `tensor` has its bytes and the size of the draw's image.
void erase_numbers(const RandomErasingDraw& draw, const TensorSpec& spec, std::byte* tensor);

/// (top, left, height, width), or nothing.
[[nodiscard]] DrawnValue shown(const RandomErasingDraw& draw);

}  // namespace precache
