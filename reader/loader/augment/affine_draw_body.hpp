// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "formats/bytes/host_device.hpp"
#include "reader/loader/augment/affine_matrix_body.hpp"
#include "reader/loader/augment/operation_random.hpp"

/// The draws of RandomAffine, for GPUs too.
namespace precache::augment {

/// The ranges of its parameters. Those that it does not have are left as they are, and draw
/// nothing.
struct AffineRanges {
  double degrees[2] = {0, 0};
  double translate[2] = {0, 0};  // largest parts of width and height
  double scale[2] = {1, 1};
  double shear[4] = {0, 0, 0, 0};  // x from, x to, y from, y to
  bool has_translate = false;
  bool has_scale = false;
  bool has_shear = false;
};

struct DrawnAffine {
  double degrees = 0;
  Point translate{};  // whole pixels
  double scale = 1;
  Point shear{};
};

/// torchvision's `RandomAffine.get_params`.
PRECACHE_HOST_DEVICE inline DrawnAffine choose_affine(const AffineRanges& ranges,
                                                      OperationRandom& random, std::uint32_t height,
                                                      std::uint32_t width) {
  DrawnAffine drawn;
  drawn.degrees = random.uniform(ranges.degrees[0], ranges.degrees[1]);
  if (ranges.has_translate) {
    const double x = ranges.translate[0] * width;
    const double y = ranges.translate[1] * height;
    drawn.translate.x = nearbyint(random.uniform(-x, x));
    drawn.translate.y = nearbyint(random.uniform(-y, y));
  }
  if (ranges.has_scale) drawn.scale = random.uniform(ranges.scale[0], ranges.scale[1]);
  if (ranges.has_shear) {
    drawn.shear.x = random.uniform(ranges.shear[0], ranges.shear[1]);
    drawn.shear.y = random.uniform(ranges.shear[2], ranges.shear[3]);
  }
  return drawn;
}

}  // namespace precache::augment
