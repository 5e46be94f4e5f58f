// SPDX-License-Identifier: Apache-2.0
#include "reader/loader/augment/blur.hpp"

#include <cmath>

#include "tests/support/catch.hpp"
#include "tests/support/planar_images.hpp"
#include "tests/support/targets.hpp"

namespace precache {
namespace {

using test::Random;

double weight(double distance, double sigma) {
  return std::exp(-0.5 * (distance / sigma) * (distance / sigma));
}

std::uint32_t mirrored(int at, std::uint32_t size) {
  if (at < 0) at = -at;
  const int last = static_cast<int>(size) - 1;
  return static_cast<std::uint32_t>(at > last ? 2 * last - at : at);
}

/// The exact sum.
double blurred(const PlanarImage& image, const GaussianBlurDraw& draw, std::uint32_t channel,
               int row, int column) {
  const int right = static_cast<int>(draw.kernel_size[0] / 2);
  const int down = static_cast<int>(draw.kernel_size[1] / 2);
  double sum = 0;
  double weights = 0;
  for (int y = -down; y <= down; ++y) {
    for (int x = -right; x <= right; ++x) {
      const double share = weight(x, draw.sigma) * weight(y, draw.sigma);
      weights += share;
      sum +=
          share * image.row(channel,
                            mirrored(row + y, image.height()))[mirrored(column + x, image.width())];
    }
  }
  return sum / weights;
}

TEST_CASE("a blur is the rounded sum, and the same on every instruction set", "[reader][augment]") {
  PlanarImage image;
  PlanarImage spare;
  PlanarImage original;
  std::vector<std::uint32_t> first;
  test::on_every_target([&] {
    Random random(1);
    std::vector<std::uint32_t> crcs;
    for (const std::uint32_t width : {1U, 2U, 5U, 16U, 17U, 47U}) {
      for (const std::uint32_t size : {1U, 3U, 5U, 9U}) {
        if (size / 2 >= width) continue;
        const GaussianBlurDraw draw{{size, 3}, 0.2 + 0.4 * size};
        test::fill_randomly(original, {2, 4, width}, random);
        test::copy(original, image);
        apply(draw, image, spare);
        REQUIRE(image.shape() == original.shape());
        for (std::uint32_t y = 0; y < 4; ++y) {
          for (std::uint32_t x = 0; x < width; ++x) {
            const double exact =
                blurred(original, draw, 1, static_cast<int>(y), static_cast<int>(x));
            REQUIRE(std::fabs(image.row(1, y)[x] - exact) < 0.5001);
          }
        }
        crcs.push_back(test::crc_of(image));
      }
    }
    if (first.empty()) first = crcs;
    CHECK(crcs == first);
  });
}

TEST_CASE("a blur keeps one colour and the extremes", "[reader][augment]") {
  PlanarImage image;
  PlanarImage spare;
  for (const int value : {0, 1, 127, 255}) {
    image.resize({3, 30, 25});
    std::memset(image.plane(0), value, image.size());
    const auto before = test::pixels_of(image);
    apply(GaussianBlurDraw{{23, 23}, 5.5}, image, spare);
    CHECK(test::pixels_of(image) == before);
    apply(GaussianBlurDraw{{3, 3}, 1e-3}, image, spare);  // all weights but one are 0
    CHECK(test::pixels_of(image) == before);
  }
}

}  // namespace
}  // namespace precache
