// SPDX-License-Identifier: Apache-2.0
#include "reader/loader/augment/affine.hpp"

#include <cmath>
#include <limits>

#include "reader/loader/augment/affine_operations.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/planar_images.hpp"
#include "tests/support/targets.hpp"

namespace precache::augment {
namespace {

using test::Random;

const std::uint8_t kNine[] = {9};
const std::uint8_t kColours[] = {1, 2, 3};
constexpr auto kNearest = Interpolation::kNearest;
constexpr auto kBilinear = Interpolation::kBilinear;

TEST_CASE("images are turned and warped as with Pillow on every instruction set",
          "[reader][augment][golden]") {
  PlanarImage image;
  PlanarImage spare;
  const AffineMap map{.degrees = 10, .translate = {2, -3}, .scale = 1.4, .shear = {5, -7}};
  // torchvision.transforms.functional: rotate(image, 33.0, ...), affine(image, 10.0, [2, -3], 1.4,
  // [5.0, -7.0], ...) and affine(image, 0.0, [2, -3], 1.4, [0.0, 0.0])
  test::on_every_target([&] {
    test::make_known(image);
    rotate(image, spare, 33, {}, {kNearest, kNine});
    CHECK(test::crc_of(image) == 0x2f907077);
    test::make_known(image);
    rotate(image, spare, 33, {}, {kBilinear, kNine});
    CHECK(test::crc_of(image) == 0x5ffa9217);
    test::make_known(image);
    affine(image, spare, map, {kNearest, kColours});
    CHECK(test::crc_of(image) == 0x4c2eae88);
    test::make_known(image);
    AffineMap centred = map;
    centred.center = Point{4, 5};
    affine(image, spare, centred, {kBilinear, kColours});
    CHECK(test::crc_of(image) == 0xafb82832);
    test::make_known(image);
    affine(image, spare, {.translate = {2, -3}, .scale = 1.4}, {});
    CHECK(test::crc_of(image) == 0xf8a9cbf9);
  });
}

/// The definition, pixel by pixel.
std::uint8_t bilinear_pixel(const PlanarImage& image, std::uint32_t channel, double x, double y,
                            std::uint8_t fill) {
  if (!(x >= 0 && x < image.width() && y >= 0 && y < image.height())) return fill;
  const double left = std::floor(x - 0.5);
  const double top = std::floor(y - 0.5);
  const auto at = [&](double row, double column) -> double {
    const double in_row = std::clamp(row, 0.0, image.height() - 1.0);
    const double in_column = std::clamp(column, 0.0, image.width() - 1.0);
    return image.row(channel,
                     static_cast<std::size_t>(in_row))[static_cast<std::size_t>(in_column)];
  };
  const double right_share = x - 0.5 - left;
  const double upper = at(top, left) + (at(top, left + 1) - at(top, left)) * right_share;
  const double lower =
      at(top + 1, left) + (at(top + 1, left + 1) - at(top + 1, left)) * right_share;
  return static_cast<std::uint8_t>(upper + (lower - upper) * (y - 0.5 - top));
}

TEST_CASE("any matrix gives the pixels of the definition", "[reader][augment]") {
  Random random(2);
  const auto uniform = [&](double most) {
    return (static_cast<double>(random() >> 11) * 0x1p-52 - 1) * most;
  };
  PlanarImage image;
  PlanarImage spare;
  PlanarImage original;
  test::on_every_target([&] {
    for (int round = 0; round < 150; ++round) {
      const auto side = [&] { return static_cast<std::uint32_t>(1 + random() % 40); };
      const ImageShape shape{static_cast<std::uint32_t>(1 + random() % 6), side(), side()};
      test::fill_randomly(original, shape, random);
      const double size = round % 3 == 0 ? 1.2 : round % 3 == 1 ? 8 : 0.05;
      AffineMatrix matrix{
          {uniform(size), uniform(size), uniform(30), uniform(size), uniform(size), uniform(30)}};
      if (round % 5 == 0) matrix.at[1] = matrix.at[3] = 0;
      if (round % 7 == 0) matrix.at[0] = 0;
      CAPTURE(shape.channels, shape.height, shape.width, matrix.at[0], matrix.at[1], matrix.at[2]);
      test::copy(original, image);
      transform(image, spare, matrix, {kBilinear, kNine});
      REQUIRE(image.shape() == shape);
      for (std::uint32_t channel = 0; channel < shape.channels; ++channel) {
        for (std::uint32_t row = 0; row < shape.height; ++row) {
          for (std::uint32_t column = 0; column < shape.width; ++column) {
            const auto& at = matrix.at;
            const double x = at[0] * (column + 0.5) + at[1] * (row + 0.5) + at[2];
            const double y = at[3] * (column + 0.5) + at[4] * (row + 0.5) + at[5];
            REQUIRE(image.row(channel, row)[column] == bilinear_pixel(original, channel, x, y, 9));
          }
        }
      }
    }
  });
}

TEST_CASE("every instruction set finds the same nearest pixels", "[reader][augment]") {
  PlanarImage image;
  PlanarImage spare;
  std::vector<std::uint32_t> first;
  test::on_every_target([&] {
    Random random(4);
    std::vector<std::uint32_t> crcs;
    for (int round = 0; round < 100; ++round) {
      test::fill_randomly(image, {3, static_cast<std::uint32_t>(1 + random() % 70), 37}, random);
      rotate(image, spare, static_cast<double>(random() % 7200) / 10, {}, {kNearest, kNine});
      crcs.push_back(test::crc_of(image));
    }
    if (first.empty()) first = crcs;
    CHECK(crcs == first);
  });
}

TEST_CASE("coordinates of any size are filled, not read", "[reader][augment][malformed]") {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  Random random(6);
  PlanarImage image;
  PlanarImage spare;
  test::on_every_target([&] {
    for (const double wild : {1e5, -1e9, 1e18, 1e300, -1e308, kInfinity, -kInfinity, kNan}) {
      for (std::size_t place = 0; place < 6; ++place) {
        for (const Interpolation interpolation : {kNearest, kBilinear}) {
          CAPTURE(wild, place);
          AffineMatrix matrix{{1, 0.5, 0, -0.25, 1, 0}};
          matrix.at[place] = wild;
          test::fill_randomly(image, {3, 20, 33}, random);
          transform(image, spare, matrix, {interpolation, kNine});
          if (place % 3 == 2) CHECK(image.row(2, 19)[32] == 9);
          matrix.at[1] = matrix.at[3] = 0;
          transform(image, spare, matrix, {interpolation, kNine});
        }
      }
    }
  });
}

TEST_CASE("quarter turns move pixels without a change", "[reader][augment]") {
  Random random(5);
  PlanarImage image;
  PlanarImage spare;
  for (const std::uint32_t size : {1U, 5U, 16U, 50U}) {
    test::fill_randomly(image, {3, size, size}, random);
    const auto original = test::pixels_of(image);
    const std::uint8_t top_right = image.row(0, 0)[size - 1];
    rotate(image, spare, 90, {}, {});
    CHECK(image.row(0, 0)[0] == top_right);
    rotate(image, spare, 90, {}, {});
    auto turned_over = test::pixels_of(image);
    rotate(image, spare, -180, {}, {});
    CHECK(test::pixels_of(image) == original);
    rotate(image, spare, 540, {}, {});
    CHECK(test::pixels_of(image) == turned_over);
    rotate(image, spare, 270, {}, {});
    rotate(image, spare, 270, {}, {});
    CHECK(test::pixels_of(image) == original);
  }
}

TEST_CASE("affine maps draw all of their numbers in range", "[reader][augment]") {
  const RandomAffine operation{.degrees = {-20, 10},
                               .translate = std::array{0.25, 0.1},
                               .scale = Range{0.5, 2},
                               .shear = std::array{-5.0, 5.0, 1.0, 2.0},
                               .fill = {7}};
  double leftmost = 0;
  for (std::uint64_t sample = 0; sample < 300; ++sample) {
    OperationRandom random({.sample = sample}, {});
    const RandomAffineDraw draw = choose(operation, random, {3, 50, 80});
    REQUIRE((draw.map.degrees >= -20 && draw.map.degrees <= 10));
    REQUIRE(std::fabs(draw.map.translate.x) <= 20);
    REQUIRE(std::fabs(draw.map.translate.y) <= 5);
    REQUIRE(draw.map.translate.x == std::trunc(draw.map.translate.x));
    REQUIRE((draw.map.scale >= 0.5 && draw.map.scale <= 2));
    REQUIRE((draw.map.shear.y >= 1 && draw.map.shear.y <= 2));
    REQUIRE(draw.sampling.fill.data() == operation.fill.data());
    leftmost = std::min(leftmost, draw.map.translate.x);
  }
  CHECK(leftmost < -18);
}

}  // namespace
}  // namespace precache::augment
