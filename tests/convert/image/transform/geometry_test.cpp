// SPDX-License-Identifier: Apache-2.0
#include "convert/image/transform/geometry.hpp"

#include <cmath>

#include "tests/support/bytes.hpp"
#include "tests/support/catch.hpp"

namespace precache {
namespace {

Recipe recipe_of(Fit fit, std::uint32_t height, std::uint32_t width, std::uint32_t resize = 0) {
  Recipe recipe;
  recipe.fit = fit;
  recipe.height = height;
  recipe.width = width;
  recipe.resize = resize;
  return recipe;
}

// Python's int(round(x / 2)): half to even.
std::uint32_t half_to_even(std::uint32_t x) {
  const std::uint32_t down = x / 2;
  return x % 2 == 0 ? down : down + down % 2;
}

// Python's round(x) for x >= 0.
std::uint32_t python_round(double x) {
  const double down = std::floor(x);
  const double rest = x - down;
  const auto whole = static_cast<std::uint32_t>(down);
  if (rest == 0.5) return whole + whole % 2;
  return rest > 0.5 ? whole + 1 : whole;
}

// One axis of torchvision's CenterCrop: padding first where the image is smaller, then the crop.
AxisGeometry torchvision_axis(std::uint32_t source, std::uint32_t resized, std::uint32_t size) {
  const std::uint32_t left_padding = size > resized ? (size - resized) / 2 : 0;
  const std::uint32_t padded = std::max(size, resized);
  const std::uint32_t first = half_to_even(padded - size);
  return {source, resized, first, std::min(size, resized), left_padding};
}

// torchvision's Resize(side) and CenterCrop(height, width), in integers.
Geometry torchvision(const Recipe& recipe, std::uint32_t width, std::uint32_t height) {
  const std::uint64_t side = recipe.shorter_side();
  const std::uint64_t shorter = std::min(width, height);
  const auto longer_resized = static_cast<std::uint32_t>(side * std::max(width, height) / shorter);
  const auto new_side = static_cast<std::uint32_t>(side);
  const bool portrait = width <= height;
  return {torchvision_axis(width, portrait ? new_side : longer_resized, recipe.width),
          torchvision_axis(height, portrait ? longer_resized : new_side, recipe.height)};
}

// Pillow's ImageOps.pad.
Geometry pillow_pad(const Recipe& recipe, std::uint32_t width, std::uint32_t height) {
  const double image_ratio = static_cast<double>(width) / height;
  const double wanted_ratio = static_cast<double>(recipe.width) / recipe.height;
  std::uint32_t new_width = recipe.width;
  std::uint32_t new_height = recipe.height;
  if (image_ratio > wanted_ratio)
    new_height = python_round(static_cast<double>(height) / width * recipe.width);
  if (image_ratio < wanted_ratio)
    new_width = python_round(static_cast<double>(width) / height * recipe.height);
  return {{width, new_width, 0, new_width, half_to_even(recipe.width - new_width)},
          {height, new_height, 0, new_height, half_to_even(recipe.height - new_height)}};
}

void check_equal(const Geometry& a, const Geometry& b) {
  const auto show = [](const AxisGeometry& axis) {
    return std::vector{axis.source, axis.resized, axis.first, axis.count, axis.placed_at};
  };
  REQUIRE(show(a.horizontal) == show(b.horizontal));
  REQUIRE(show(a.vertical) == show(b.vertical));
}

// The invariants on which the rest of the pipeline relies.
void check_sound(const Geometry& geometry, const Recipe& recipe) {
  for (const auto& [axis, size] :
       {std::pair{geometry.horizontal, recipe.width}, {geometry.vertical, recipe.height}}) {
    REQUIRE(axis.first + axis.count <= axis.resized);
    REQUIRE(axis.placed_at + axis.count <= size);
  }
}

TEST_CASE("crop takes the part that torchvision takes", "[convert][geometry]") {
  test::Random random(1);
  for (const auto& [height, width, resize] : {std::array{224U, 224U, 256U},
                                              {224U, 224U, 0U},
                                              {224U, 224U, 224U},
                                              {5U, 9U, 0U},
                                              {9U, 5U, 3U},
                                              {1U, 1U, 1U},
                                              {299U, 299U, 342U},
                                              {100U, 300U, 150U},
                                              {300U, 100U, 150U},
                                              {64U, 64U, 16384U}}) {
    const Recipe recipe = recipe_of(Fit::kCrop, height, width, resize);
    for (int i = 0; i < 3000; ++i) {
      const auto w = static_cast<std::uint32_t>(1 + test::below(random, i % 3 == 0 ? 20 : 5000));
      const auto h = static_cast<std::uint32_t>(1 + test::below(random, i % 5 == 0 ? 20 : 5000));
      CAPTURE(height, width, resize, w, h);
      const Geometry geometry = make_geometry(recipe, w, h);
      check_equal(geometry, torchvision(recipe, w, h));
      check_sound(geometry, recipe);
    }
  }
}

TEST_CASE("crop offsets round half to even as Python does", "[convert][geometry]") {
  const auto offset = [](std::uint32_t size, std::uint32_t resize) {
    return make_geometry(recipe_of(Fit::kCrop, size, size, resize), 100, 100).horizontal.first;
  };
  CHECK(offset(224, 256) == 16);
  CHECK(offset(10, 11) == 0);  // 0.5
  CHECK(offset(10, 13) == 2);  // 1.5
  CHECK(offset(10, 15) == 2);  // 2.5
  CHECK(offset(10, 17) == 4);  // 3.5
  CHECK(offset(10, 12) == 1);
  // The usual case of ImageNet: 500 x 375 to 341 x 256.
  const Geometry geometry = make_geometry(recipe_of(Fit::kCrop, 224, 224, 256), 500, 375);
  CHECK(geometry.horizontal == AxisGeometry{500, 341, 58, 224, 0});
  CHECK(geometry.vertical == AxisGeometry{375, 256, 16, 224, 0});
}

TEST_CASE("crop pads an image that is smaller on the right and below", "[convert][geometry]") {
  const Geometry geometry = make_geometry(recipe_of(Fit::kCrop, 10, 20, 7), 14, 28);
  CHECK(geometry.horizontal == AxisGeometry{14, 7, 0, 7, 6});
  CHECK(geometry.vertical == AxisGeometry{28, 14, 2, 10, 0});
}

TEST_CASE("pad is ImageOps.pad of Pillow", "[convert][geometry]") {
  test::Random random(2);
  for (const auto& [height, width] :
       {std::array{224U, 224U}, {5U, 9U}, {9U, 5U}, {1U, 1U}, {100U, 300U}}) {
    const Recipe recipe = recipe_of(Fit::kPad, height, width);
    for (int i = 0; i < 5000; ++i) {
      const auto w = static_cast<std::uint32_t>(1 + test::below(random, i % 3 == 0 ? 30 : 5000));
      const auto h = static_cast<std::uint32_t>(1 + test::below(random, i % 5 == 0 ? 30 : 5000));
      CAPTURE(height, width, w, h);
      const Geometry geometry = make_geometry(recipe, w, h);
      check_equal(geometry, pillow_pad(recipe, w, h));
      check_sound(geometry, recipe);
      // One axis is always full.
      REQUIRE((geometry.horizontal.count == width || geometry.vertical.count == height));
    }
  }
  const Geometry nothing = make_geometry(recipe_of(Fit::kPad, 224, 224), 65535, 1);
  CHECK(nothing.vertical.count == 0);  // round(1 / 65535 * 224)
}

TEST_CASE("stretch fills the tensor for any image", "[convert][geometry]") {
  const Geometry geometry = make_geometry(recipe_of(Fit::kStretch, 5, 9), 1000, 3);
  CHECK(geometry.horizontal == AxisGeometry{1000, 9, 0, 9, 0});
  CHECK(geometry.vertical == AxisGeometry{3, 5, 0, 5, 0});
}

TEST_CASE("the vertical pass comes first if it saves more than twice as much",
          "[convert][geometry]") {
  const auto vertical_first = [](std::uint32_t w, std::uint32_t h, std::uint32_t new_w,
                                 std::uint32_t new_h) {
    return Geometry{{w, new_w, 0, new_w, 0}, {h, new_h, 0, new_h, 0}}.vertical_first();
  };
  CHECK_FALSE(vertical_first(100, 100, 50, 50));
  CHECK_FALSE(vertical_first(100, 100, 200, 200));  // nothing is saved
  CHECK_FALSE(vertical_first(100, 200, 50, 100));   // 100 is not more than twice 50
  CHECK(vertical_first(100, 201, 50, 100));
  CHECK(vertical_first(100, 100, 100, 99));
  CHECK(vertical_first(50, 100, 60, 99));
  CHECK_FALSE(vertical_first(50, 100, 60, 100));
}

TEST_CASE("crop of the longest images and the largest tensors fits its numbers",
          "[convert][geometry][malformed]") {
  for (const std::uint32_t size : {1U, 224U, 16384U}) {
    const Recipe recipe = recipe_of(Fit::kCrop, size, size);
    for (const std::uint32_t shorter : {1U, 2U, 1000U}) {
      check_equal(make_geometry(recipe, kLongestSide, shorter),
                  torchvision(recipe, kLongestSide, shorter));
      check_equal(make_geometry(recipe, shorter, kLongestSide),
                  torchvision(recipe, shorter, kLongestSide));
      check_sound(make_geometry(recipe, kLongestSide, shorter), recipe);
    }
  }
  const Geometry geometry = make_geometry(recipe_of(Fit::kCrop, 16384, 16384), kLongestSide, 1);
  CHECK(geometry.horizontal.resized == std::uint64_t{16384} * kLongestSide);
}

}  // namespace
}  // namespace precache
