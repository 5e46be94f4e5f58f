// SPDX-License-Identifier: Apache-2.0
#include "reader/loader/augment/colour.hpp"

#include <functional>
#include <set>

#include "reader/loader/augment/colour_body.hpp"
#include "reader/loader/augment/colour_operations.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/planar_images.hpp"
#include "tests/support/targets.hpp"

namespace precache::augment {
namespace {

using test::Random;
using Change = std::function<void(PlanarImage&, PlanarImage&)>;

struct Known {
  const char* name;
  Change change;
  std::uint32_t crc;
};

// With torchvision.transforms.functional on a Pillow image F(image):
// google_crc32c.value(np.asarray(F(image)).transpose(2, 0, 1).tobytes())
const Known kKnown[] = {
    {"adjust_brightness", [](auto& image, auto&) { adjust_brightness(image, 1.3); }, 0xf458110e},
    {"adjust_contrast", [](auto& image, auto&) { adjust_contrast(image, 0.6); }, 0x96f87b8e},
    {"adjust_saturation", [](auto& image, auto&) { adjust_saturation(image, 1.7); }, 0x5a172c0e},
    {"adjust_hue", [](auto& image, auto&) { adjust_hue(image, -0.2); }, 0x92a54cf3},
    {"adjust_sharpness", [](auto& image, auto& spare) { adjust_sharpness(image, spare, 1.9); },
     0xe1aaa109},
    {"to_grayscale", [](auto& image, auto&) { to_grayscale(image); }, 0xbaa9a3b0},
    {"solarize", [](auto& image, auto&) { solarize(image, 99.5); }, 0x59fdc791},
    {"posterize", [](auto& image, auto&) { posterize(image, 3); }, 0x701c1050},
    {"equalize", [](auto& image, auto&) { equalize(image); }, 0x6c91781e},
    {"autocontrast", [](auto& image, auto&) { autocontrast(image); }, 0xfa0a8fe2},
    {"invert", [](auto& image, auto&) { invert(image); }, 0xd7e51920},
};

TEST_CASE("colours change as with Pillow on every instruction set", "[reader][augment][golden]") {
  PlanarImage image;
  PlanarImage spare;
  test::on_every_target([&] {
    for (const Known& known : kKnown) {
      CAPTURE(known.name);
      test::make_known(image);
      known.change(image, spare);
      CHECK(test::crc_of(image) == known.crc);
    }
  });
}

TEST_CASE("colours of images of any size are those of their definition", "[reader][augment]") {
  Random random(1);
  PlanarImage image;
  PlanarImage spare;
  PlanarImage original;
  test::on_every_target([&] {
    for (const std::uint32_t width : {1U, 2U, 3U, 15U, 16U, 17U, 63U, 130U}) {
      for (const float factor : {0.0F, 0.35F, 0.9F, 1.0F, 1.1F, 4.9F}) {
        CAPTURE(width, factor);
        test::fill_randomly(original, {3, 3, width}, random);
        const std::uint8_t* const r = original.plane(0);
        const std::uint8_t* const g = original.plane(1);
        const std::uint8_t* const b = original.plane(2);
        test::copy(original, image);
        adjust_saturation(image, factor);
        for (std::size_t i = 0; i < image.plane_size(); ++i) {
          const std::uint8_t grey = luma(r[i], g[i], b[i]);
          REQUIRE(image.plane(0)[i] == blend(grey, r[i], factor));
          REQUIRE(image.plane(2)[i] == blend(grey, b[i], factor));
        }
        test::copy(original, image);
        adjust_brightness(image, factor);
        for (std::size_t i = 0; i < image.size(); ++i)
          REQUIRE(image.plane(0)[i] == blend(0, r[i], factor));
        test::copy(original, image);
        adjust_hue(image, 0.25);
        for (std::size_t i = 0; i < image.plane_size(); ++i) {
          Hsv pixel = hsv_of({r[i], g[i], b[i]});
          pixel.h = static_cast<std::uint8_t>(pixel.h + 63);
          const Rgb expected = rgb_of(pixel);
          REQUIRE(image.plane(0)[i] == expected.r);
          REQUIRE(image.plane(1)[i] == expected.g);
          REQUIRE(image.plane(2)[i] == expected.b);
        }
        test::copy(original, image);
        adjust_sharpness(image, spare, factor);
        for (std::uint32_t x = 1; x + 1 < width; ++x) {
          std::uint32_t around = 0;
          for (std::uint32_t y = 0; y < 3; ++y) {
            for (const std::uint32_t n : {x - 1, x, x + 1}) around += original.row(1, y)[n];
          }
          const std::uint8_t middle = original.row(1, 1)[x];
          REQUIRE(image.row(1, 1)[x] == blend(smooth(around - middle, middle), middle, factor));
        }
      }
    }
  });
}

TEST_CASE("the sum of a smoothed pixel is divided as in its definition", "[reader][augment]") {
  // One row of three pixels whose sum takes all values that there are.
  PlanarImage image;
  PlanarImage spare;
  test::on_every_target([&] {
    for (std::uint32_t sum = 0; sum <= 8 * 255 + 255; ++sum) {
      image.resize({1, 3, 3});
      std::uint32_t rest = sum;
      for (std::size_t i = 0; i < 9; ++i) {
        const std::uint32_t pixel = rest < 255 ? rest : 255;
        image.plane(0)[i] = static_cast<std::uint8_t>(pixel);
        rest -= pixel;
      }
      const std::uint32_t middle = image.plane(0)[4];
      const std::uint8_t expected = smooth(sum - middle, middle);
      adjust_sharpness(image, spare, 0);
      REQUIRE(image.plane(0)[4] == expected);
    }
  });
}

TEST_CASE("colours of grey images and of no pixels", "[reader][augment]") {
  Random random(3);
  PlanarImage image;
  PlanarImage spare;
  test::fill_randomly(image, {1, 4, 5}, random);
  const auto before = test::pixels_of(image);
  adjust_saturation(image, 3);
  adjust_hue(image, 0.4);
  to_grayscale(image);
  adjust_contrast(image, 1);
  posterize(image, 8);
  solarize(image, 256);
  CHECK(test::pixels_of(image) == before);
  invert(image);
  solarize(image, 0);
  CHECK(test::pixels_of(image) == before);
  for (const Known& known : kKnown) {
    image.resize({3, 0, 7});
    known.change(image, spare);
  }
}

TEST_CASE("the jitter draws each order and stays in its ranges", "[reader][augment]") {
  const ColorJitter operation{.brightness = Range{0.6, 1.4}, .hue = Range{-0.1, 0.1}};
  std::set<std::array<std::uint8_t, 4>> orders;
  for (std::uint64_t sample = 0; sample < 500; ++sample) {
    OperationRandom random({.seed = 4, .sample = sample}, {});
    const ColorJitterDraw draw = choose(operation, random, {3, 8, 8});
    orders.insert(draw.order);
    REQUIRE(draw.factors[0].value() >= 0.6);
    REQUIRE(draw.factors[0].value() <= 1.4);
    REQUIRE(std::abs(draw.factors[3].value()) <= 0.1);
    REQUIRE((!draw.factors[1] && !draw.factors[2]));
    // Another range does not change what is drawn for this one.
    OperationRandom again({.seed = 4, .sample = sample}, {});
    ColorJitter wider = operation;
    wider.contrast = Range{0, 2};
    REQUIRE(choose(wider, again, {3, 8, 8}).factors[3] == draw.factors[3]);
  }
  CHECK(orders.size() == 24);
}

TEST_CASE("a jitter applies its factors in the drawn order", "[reader][augment]") {
  const ColorJitterDraw draw{.order = {2, 0, 3, 1}, .factors = {1.4, 0.7, std::nullopt, 0.1}};
  PlanarImage image;
  PlanarImage expected;
  PlanarImage spare;
  test::make_known(image);
  test::make_known(expected);
  apply(draw, image, spare);
  adjust_brightness(expected, 1.4);
  adjust_hue(expected, 0.1);
  adjust_contrast(expected, 0.7);
  CHECK(test::pixels_of(image) == test::pixels_of(expected));
  const auto shown_values = std::get<std::vector<DrawnValue>>(shown(draw));
  REQUIRE(shown_values.size() == 5);
  CHECK(std::get<std::int64_t>(std::get<std::vector<DrawnValue>>(shown_values[0])[3]) == 1);
  CHECK(std::get<double>(shown_values[2]) == 0.7);
  CHECK(std::holds_alternative<std::monostate>(shown_values[3]));
}

TEST_CASE("operations with a probability are applied that often", "[reader][augment]") {
  std::size_t applied = 0;
  for (std::uint64_t sample = 0; sample < 4000; ++sample) {
    OperationRandom random({.seed = 5, .sample = sample}, {});
    applied += choose(RandomSolarize{.threshold = 9, .p = 0.25}, random, {}).applied ? 1U : 0U;
  }
  CHECK(applied > 880);  // 1,000, and a deviation of 27
  CHECK(applied < 1120);
}

}  // namespace
}  // namespace precache::augment
