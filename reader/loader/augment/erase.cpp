// SPDX-License-Identifier: Apache-2.0
#include "reader/loader/augment/erase.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "formats/bytes/half_float.hpp"
#include "reader/loader/augment/exponential.hpp"

namespace precache {
namespace {

/// Random bits of one element of an image.
std::uint64_t noise_bits(std::uint64_t key, std::uint64_t element) {
  return splitmix(key + kGoldenGamma * (element + 1));
}

/// Nearly normal, with mean 0 and variance 1: the heads of 64 coins, and a uniform number between
/// them. Integers make it the same everywhere, and faster than a logarithm.
float normal_noise(std::uint64_t key, std::uint64_t element) {
  const std::uint64_t bits = noise_bits(key, element);
  const int heads = std::popcount(bits) - 32;
  const double between = static_cast<double>(splitmix(bits) >> 11) * 0x1p-53 - 0.5;
  constexpr double kInverseDeviation = 0.24935149047701483;  // 1 / sqrt(64 / 4 + 1 / 12)
  return static_cast<float>((heads + between) * kInverseDeviation);
}

double value_of(const RandomErasingDraw& draw, std::uint32_t channel) {
  if (draw.value.empty()) return 0;
  return draw.value[draw.value.size() == 1 ? 0 : channel % draw.value.size()];
}

std::uint8_t pixel_of(double value) {
  return value >= 255 ? 255 : value >= 0 ? static_cast<std::uint8_t>(value) : 0;  // NaN is 0
}

void put_number(std::byte* at, DType type, float number) {
  if (type == DType::kFloat32) {
    std::memcpy(at, &number, sizeof number);
    return;
  }
  const std::uint16_t half = type == DType::kFloat16 ? to_float16(number) : to_bfloat16(number);
  std::memcpy(at, &half, sizeof half);
}

}  // namespace

RandomErasingDraw choose(const RandomErasing& operation, OperationRandom& random,
                         const ImageShape& shape) {
  RandomErasingDraw draw{.value = operation.value,
                         .random = operation.random,
                         .after_normalize = operation.after_normalize};
  if (!random.chance(operation.p)) return draw;
  const double area = static_cast<double>(shape.height) * shape.width;
  const double lowest = augment::logarithm_of(operation.ratio[0]);
  const double highest = augment::logarithm_of(operation.ratio[1]);
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double erased = area * random.uniform(operation.scale[0], operation.scale[1]);
    const double ratio = augment::exponential_of(random.uniform(lowest, highest));
    const double height = std::nearbyint(std::sqrt(erased * ratio));
    const double width = std::nearbyint(std::sqrt(erased / ratio));
    if (!(height < shape.height && width < shape.width)) continue;
    draw.applied = true;
    draw.height = static_cast<std::uint32_t>(height);
    draw.width = static_cast<std::uint32_t>(width);
    draw.top = static_cast<std::uint32_t>(random.below(shape.height - draw.height + 1));
    draw.left = static_cast<std::uint32_t>(random.below(shape.width - draw.width + 1));
    draw.noise = random.bits();
    break;
  }
  return draw;
}

void apply(const RandomErasingDraw& draw, PlanarImage& image, PlanarImage&) {
  if (!draw.applied || draw.after_normalize) return;
  for (std::uint32_t channel = 0; channel < image.channels(); ++channel) {
    const std::uint8_t pixel = pixel_of(value_of(draw, channel));
    for (std::uint32_t y = draw.top; y < draw.top + draw.height; ++y) {
      std::uint8_t* const row = image.row(channel, y) + draw.left;
      if (!draw.random) {
        std::memset(row, pixel, draw.width);
        continue;
      }
      const std::uint64_t first =
          (std::uint64_t{channel} * image.height() + y) * image.width() + draw.left;
      for (std::uint32_t x = 0; x < draw.width; ++x) {
        row[x] = static_cast<std::uint8_t>(noise_bits(draw.noise, first + x));
      }
    }
  }
}

void erase_numbers(const RandomErasingDraw& draw, const TensorSpec& spec, std::byte* tensor) {
  if (!draw.applied || !draw.after_normalize) return;
  const std::size_t number_bytes = spec.dtype == DType::kFloat32 ? 4 : 2;
  const std::size_t plane = std::size_t{spec.height} * spec.width;
  const bool planar = spec.layout == Layout::kChw;
  const std::size_t column_step = planar ? 1 : spec.channels;
  const std::size_t channel_step = planar ? plane : 1;
  for (std::uint32_t channel = 0; channel < spec.channels; ++channel) {
    const auto value = static_cast<float>(value_of(draw, channel));
    for (std::uint32_t y = draw.top; y < draw.top + draw.height; ++y) {
      for (std::uint32_t x = draw.left; x < draw.left + draw.width; ++x) {
        const std::size_t pixel = std::size_t{y} * spec.width + x;
        const float number =
            draw.random ? normal_noise(draw.noise, channel * plane + pixel) : value;
        put_number(tensor + (channel * channel_step + pixel * column_step) * number_bytes,
                   spec.dtype, number);
      }
    }
  }
}

DrawnValue shown(const RandomErasingDraw& draw) {
  if (!draw.applied) return {};
  const auto whole = [](std::uint32_t value) { return DrawnValue(std::int64_t{value}); };
  return std::vector<DrawnValue>{whole(draw.top), whole(draw.left), whole(draw.height),
                                 whole(draw.width)};
}

}  // namespace precache
