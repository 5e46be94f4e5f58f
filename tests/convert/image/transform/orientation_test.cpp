// SPDX-License-Identifier: Apache-2.0
#include "convert/image/transform/orientation.hpp"

#include <utility>

#include "tests/support/bytes.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/pixels.hpp"

namespace precache {
namespace {

// The position in the stored image of the pixel (x, y) of the oriented one, as EXIF defines it.
std::pair<std::uint32_t, std::uint32_t> stored_pixel(int orientation, std::uint32_t x,
                                                     std::uint32_t y, std::uint32_t width,
                                                     std::uint32_t height) {
  switch (orientation) {
    case 2:
      return {width - 1 - x, y};
    case 3:
      return {width - 1 - x, height - 1 - y};
    case 4:
      return {x, height - 1 - y};
    case 5:
      return {y, x};
    case 6:
      return {y, height - 1 - x};
    case 7:
      return {width - 1 - y, height - 1 - x};
    case 8:
      return {width - 1 - y, x};
    default:
      return {x, y};
  }
}

void check_region(int orientation, std::uint32_t width, std::uint32_t height,
                  const Region& oriented) {
  CAPTURE(orientation, width, height, oriented.x, oriented.y, oriented.width, oriented.height);
  const Region stored = stored_region(oriented, orientation, width, height);
  REQUIRE(stored.x + stored.width <= width);
  REQUIRE(stored.y + stored.height <= height);

  std::vector<std::uint8_t> image(std::size_t{width} * height * kPixelBytes + kRowSlack);
  for (std::size_t i = 0; i < image.size(); ++i) image[i] = static_cast<std::uint8_t>(i * 131 >> 3);
  OrientingSink sink;
  sink.start(stored.width, stored.height);
  for (std::uint32_t y = stored.y; y < stored.y + stored.height; ++y) {
    sink.take_row(&image[(std::size_t{y} * width + stored.x) * kPixelBytes]);
  }
  test::CollectingSink collected(oriented.width);
  sink.hand_over(orientation, collected);

  std::vector<std::uint8_t> expected;
  for (std::uint32_t y = oriented.y; y < oriented.y + oriented.height; ++y) {
    for (std::uint32_t x = oriented.x; x < oriented.x + oriented.width; ++x) {
      const auto [stored_x, stored_y] = stored_pixel(orientation, x, y, width, height);
      const auto* pixel = &image[(std::size_t{stored_y} * width + stored_x) * kPixelBytes];
      expected.insert(expected.end(), pixel, pixel + kPixelBytes);
    }
  }
  REQUIRE(collected.rows == oriented.height);
  REQUIRE(collected.pixels == expected);
}

TEST_CASE("orientations from 5 on exchange rows and columns", "[convert][orientation]") {
  for (int orientation = 1; orientation <= 8; ++orientation) {
    CHECK(is_transposed(orientation) == (orientation > 4));
  }
}

TEST_CASE("an oriented region is the part of the image that a viewer shows",
          "[convert][orientation]") {
  test::Random random(5);
  for (int orientation = 1; orientation <= 8; ++orientation) {
    for (const auto& [width, height] :
         {std::pair{5U, 3U}, {3U, 5U}, {1U, 7U}, {7U, 1U}, {1U, 1U}, {16U, 16U}}) {
      const std::uint32_t shown_width = is_transposed(orientation) ? height : width;
      const std::uint32_t shown_height = is_transposed(orientation) ? width : height;
      check_region(orientation, width, height, {0, 0, shown_width, shown_height});
      for (int i = 0; i < 20; ++i) {
        const auto x = static_cast<std::uint32_t>(test::below(random, shown_width));
        const auto y = static_cast<std::uint32_t>(test::below(random, shown_height));
        check_region(orientation, width, height,
                     {x, y, static_cast<std::uint32_t>(1 + test::below(random, shown_width - x)),
                      static_cast<std::uint32_t>(1 + test::below(random, shown_height - y))});
      }
    }
  }
}

TEST_CASE("an orienting sink can be used again for an image of another size",
          "[convert][orientation]") {
  OrientingSink sink;
  const std::vector<std::uint8_t> row(100 * kPixelBytes + kRowSlack, 7);
  sink.start(100, 2);
  sink.take_row(row.data());  // abandoned before the end
  sink.start(2, 1);
  sink.take_row(row.data());
  test::CollectingSink collected(1);
  sink.hand_over(6, collected);
  CHECK(collected.rows == 2);
  CHECK(collected.pixels.size() == 2 * kPixelBytes);
}

}  // namespace
}  // namespace precache
