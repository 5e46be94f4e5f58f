// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "precache/reader/augmentation.hpp"
#include "reader/loader/augment/operation_random.hpp"
#include "reader/loader/augment/planar_image.hpp"

/// GaussianBlur. torchvision convolves floats with a two-dimensional kernel, in an order that
/// depends on the machine; this does it in two passes, in the same order everywhere. A few pixels
/// in a million differ by one, where the sum is near a half; docs/exactness.md has the figures.
namespace precache {

constexpr std::uint32_t kLargestBlur = 255;  // pixels of a kernel, in each direction

struct GaussianBlurDraw {
  std::array<std::uint32_t, 2> kernel_size{1, 1};  // of x and y, odd, at most kLargestBlur
  double sigma = 1;
};

[[nodiscard]] GaussianBlurDraw choose(const GaussianBlur& operation, OperationRandom& random,
                                      const ImageShape& shape);
/// Places outside the image are mirrored at the edge pixels.
/// REQUIRES: half of the kernel is smaller than the image in both directions.
void apply(const GaussianBlurDraw& draw, PlanarImage& image, PlanarImage& spare);
/// The sigma.
[[nodiscard]] DrawnValue shown(const GaussianBlurDraw& draw);

}  // namespace precache
