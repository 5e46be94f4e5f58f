// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

#include "formats/bytes/host_device.hpp"
#include "formats/bytes/splitmix.hpp"
#include "reader/loader/augment/exponential.hpp"
#include "reader/loader/augment/operation_random.hpp"
#include "reader/loader/augment/rectangle_body.hpp"

namespace precache::augment {

/// The rectangle that RandomErasing draws, and the key of its noise.
struct Erased {
  bool applied = false;
  Rectangle rectangle;
  std::uint64_t noise = 0;
};

/// torchvision's `RandomErasing.get_params`, with the sample's chance.
PRECACHE_HOST_DEVICE inline Erased choose_erased(double p, const RectangleRanges& ranges,
                                                 OperationRandom& random,
                                                 std::uint32_t image_height,
                                                 std::uint32_t image_width) {
  constexpr int kTries = 10;
  Erased erased;
  if (!random.chance(p)) return erased;
  const double area = static_cast<double>(image_height) * image_width;
  for (int i = 0; i < kTries; ++i) {
    const double target = area * random.uniform(ranges.scale[0], ranges.scale[1]);
    const double ratio = exponential_of(random.uniform(ranges.log_ratio[0], ranges.log_ratio[1]));
    const double height = round_half_even(std::sqrt(target * ratio));
    const double width = round_half_even(std::sqrt(target / ratio));
    if (!(height < image_height && width < image_width)) continue;
    erased.applied = true;
    const auto h = static_cast<std::uint32_t>(height);
    const auto w = static_cast<std::uint32_t>(width);
    erased.rectangle.top = static_cast<std::uint32_t>(random.below(image_height - h + 1));
    erased.rectangle.left = static_cast<std::uint32_t>(random.below(image_width - w + 1));
    erased.rectangle.height = h;
    erased.rectangle.width = w;
    erased.noise = random.bits();
    break;
  }
  return erased;
}

/// Random bits of one element of an image.
PRECACHE_HOST_DEVICE inline std::uint64_t noise_bits(std::uint64_t key, std::uint64_t element) {
  return splitmix(key + kGoldenGamma * (element + 1));
}

/// Nearly normal, with mean 0 and variance 1: the heads of 64 coins, and a uniform number between
/// them. Integers make it the same everywhere, and faster than a logarithm.
PRECACHE_HOST_DEVICE inline float normal_noise(std::uint64_t key, std::uint64_t element) {
  const std::uint64_t bits = noise_bits(key, element);
#ifdef __CUDA_ARCH__
  const int heads = __popcll(bits) - 32;
#else
  const int heads = __builtin_popcountll(bits) - 32;
#endif
  const double between = static_cast<double>(splitmix(bits) >> 11) * 0x1p-53 - 0.5;
  constexpr double kInverseDeviation = 0.24935149047701483;  // 1 / sqrt(64 / 4 + 1 / 12)
  return static_cast<float>((heads + between) * kInverseDeviation);
}

/// A value as a pixel; NaN is 0.
PRECACHE_HOST_DEVICE inline std::uint8_t erased_pixel(double value) {
  return value >= 255 ? 255 : value >= 0 ? static_cast<std::uint8_t>(value) : 0;
}

}  // namespace precache::augment
