// SPDX-License-Identifier: Apache-2.0
#include "reader/loader/augment/erase.hpp"

#include <cstring>
#include <tuple>
#include <vector>

#include "formats/bytes/half_float.hpp"
#include "reader/loader/augment/erase_body.hpp"
#include "reader/loader/augment/exponential.hpp"

namespace precache {
namespace {

double value_of(const RandomErasingDraw& draw, std::uint32_t channel) {
  if (draw.value.empty()) return 0;
  return draw.value[draw.value.size() == 1 ? 0 : channel % draw.value.size()];
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
  const auto& [scale, ratio] = std::tie(operation.scale, operation.ratio);
  const augment::RectangleRanges ranges{
      {scale[0], scale[1]},
      {ratio[0], ratio[1]},
      {augment::logarithm_of(ratio[0]), augment::logarithm_of(ratio[1])}};
  const augment::Erased erased =
      augment::choose_erased(operation.p, ranges, random, shape.height, shape.width);
  draw.applied = erased.applied;
  draw.top = erased.rectangle.top;
  draw.left = erased.rectangle.left;
  draw.height = erased.rectangle.height;
  draw.width = erased.rectangle.width;
  draw.noise = erased.noise;
  return draw;
}

void apply(const RandomErasingDraw& draw, PlanarImage& image, PlanarImage&) {
  if (!draw.applied || draw.after_normalize) return;
  for (std::uint32_t channel = 0; channel < image.channels(); ++channel) {
    const std::uint8_t pixel = augment::erased_pixel(value_of(draw, channel));
    for (std::uint32_t y = draw.top; y < draw.top + draw.height; ++y) {
      std::uint8_t* const row = image.row(channel, y) + draw.left;
      if (!draw.random) {
        std::memset(row, pixel, draw.width);
        continue;
      }
      const std::uint64_t first =
          (std::uint64_t{channel} * image.height() + y) * image.width() + draw.left;
      for (std::uint32_t x = 0; x < draw.width; ++x) {
        row[x] = static_cast<std::uint8_t>(augment::noise_bits(draw.noise, first + x));
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
            draw.random ? augment::normal_noise(draw.noise, channel * plane + pixel) : value;
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
