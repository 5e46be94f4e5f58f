// SPDX-License-Identifier: Apache-2.0
#include "reader/loader/augment/erase.hpp"

#include <cmath>
#include <cstring>

#include "formats/bytes/half_float.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/planar_images.hpp"

namespace precache {
namespace {

constexpr ImageShape kShape{3, 40, 60};

RandomErasingDraw drawn(const RandomErasing& operation, std::uint64_t sample) {
  OperationRandom random({.seed = 1, .sample = sample}, {});
  return choose(operation, random, kShape);
}

TEST_CASE("rectangles to erase have the drawn area and shape", "[reader][augment]") {
  const RandomErasing operation{.p = 0.75, .scale = {0.1, 0.2}, .ratio = {0.5, 2}};
  std::size_t applied = 0;
  for (std::uint64_t sample = 0; sample < 2000; ++sample) {
    const RandomErasingDraw draw = drawn(operation, sample);
    if (!draw.applied) {
      CHECK(std::holds_alternative<std::monostate>(shown(draw)));
      continue;
    }
    ++applied;
    const double area = static_cast<double>(draw.height) * draw.width / (40 * 60);
    REQUIRE((area > 0.08 && area < 0.22));
    const double ratio = static_cast<double>(draw.height) / draw.width;
    REQUIRE((ratio > 0.45 && ratio < 2.2));
    REQUIRE(draw.top + draw.height <= kShape.height);
    REQUIRE(draw.left + draw.width <= kShape.width);
  }
  CHECK(applied > 1420);  // 1,500, and a deviation of 19
  CHECK(applied < 1580);
}

TEST_CASE("a rectangle that does not fit is not erased", "[reader][augment]") {
  for (std::uint64_t sample = 0; sample < 50; ++sample) {
    CHECK_FALSE(drawn({.p = 1, .scale = {1, 1}, .ratio = {1, 1}}, sample).applied);
  }
}

TEST_CASE("pixels are erased in the rectangle and nowhere else", "[reader][augment]") {
  const RandomErasing operation{.p = 1, .value = {300, -4, 7.9}};
  const RandomErasing noisy{.p = 1, .random = true};
  PlanarImage image;
  PlanarImage spare;
  for (std::uint64_t sample = 0; sample < 40; ++sample) {
    const RandomErasingDraw draw = drawn(sample % 2 == 0 ? operation : noisy, sample);
    image.resize(kShape);
    std::memset(image.plane(0), 100, image.size());
    apply(draw, image, spare);
    std::size_t as_before = 0;
    for (std::uint32_t channel = 0; channel < 3; ++channel) {
      constexpr std::uint8_t kErased[] = {255, 0, 7};
      for (std::uint32_t y = 0; y < kShape.height; ++y) {
        for (std::uint32_t x = 0; x < kShape.width; ++x) {
          const bool inside = y - draw.top < draw.height && x - draw.left < draw.width;
          const std::uint8_t pixel = image.row(channel, y)[x];
          if (!inside) REQUIRE(pixel == 100);
          if (inside && !draw.random) REQUIRE(pixel == kErased[channel]);
          if (inside && pixel == 100) ++as_before;
        }
      }
    }
    CHECK(as_before * 50 < std::size_t{3} * draw.height * draw.width + 100);
  }
}

TEST_CASE("numbers are erased in every type and layout", "[reader][augment]") {
  const RandomErasing operation{.p = 1, .value = {0.5, -2, 1.25}, .after_normalize = true};
  const RandomErasingDraw draw = drawn(operation, 3);
  REQUIRE(draw.applied);
  for (const Layout layout : kAllLayouts) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBfloat16}) {
      const TensorSpec spec{dtype, layout, kShape.height, kShape.width, kShape.channels};
      std::vector<std::byte> tensor(spec.size_bytes());
      erase_numbers(draw, spec, tensor.data());
      const auto number_at = [&](std::uint32_t channel, std::uint32_t y, std::uint32_t x) {
        const std::size_t pixel = std::size_t{y} * spec.width + x;
        const std::size_t element = layout == Layout::kHwc
                                        ? pixel * 3 + channel
                                        : channel * std::size_t{spec.height} * spec.width + pixel;
        if (dtype == DType::kFloat32) {
          float number = 0;
          std::memcpy(&number, &tensor[element * 4], 4);
          return number;
        }
        std::uint16_t half = 0;
        std::memcpy(&half, &tensor[element * 2], 2);
        return dtype == DType::kFloat16 ? from_float16(half) : from_bfloat16(half);
      };
      for (std::uint32_t channel = 0; channel < 3; ++channel) {
        constexpr float kErased[] = {0.5F, -2, 1.25F};
        for (std::uint32_t y = 0; y < kShape.height; ++y) {
          for (std::uint32_t x = 0; x < kShape.width; ++x) {
            const bool inside = y - draw.top < draw.height && x - draw.left < draw.width;
            REQUIRE(number_at(channel, y, x) == (inside ? kErased[channel] : 0.0F));
          }
        }
      }
    }
  }
  PlanarImage image;
  PlanarImage spare;
  test::make_known(image);
  const auto before = test::pixels_of(image);
  apply(draw, image, spare);  // is for numbers
  CHECK(test::pixels_of(image) == before);
}

TEST_CASE("the noise of numbers is normal", "[reader][augment]") {
  RandomErasingDraw draw{.applied = true,
                         .height = 200,
                         .width = 200,
                         .random = true,
                         .after_normalize = true,
                         .noise = 77};
  const TensorSpec spec{DType::kFloat32, Layout::kChw, 200, 200, 1};
  std::vector<float> numbers(40000);
  erase_numbers(draw, spec, reinterpret_cast<std::byte*>(numbers.data()));
  double sum = 0;
  double squares = 0;
  double fourths = 0;
  for (const double number : numbers) {
    sum += number;
    squares += number * number;
    fourths += number * number * number * number;
  }
  CHECK(std::fabs(sum / 40000) < 0.02);  // four deviations
  CHECK(std::fabs(squares / 40000 - 1) < 0.03);
  CHECK(std::fabs(fourths / 40000 - 3) < 0.25);
}

}  // namespace
}  // namespace precache
