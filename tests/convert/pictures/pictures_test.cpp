// SPDX-License-Identifier: Apache-2.0
#include "precache/convert/pictures.hpp"

#include <png.h>

#include <set>

#include "convert/pictures/painting.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/catch.hpp"

namespace precache {
namespace {

Picture decoded(const std::string& file) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  REQUIRE(png_image_begin_read_from_memory(&image, file.data(), file.size()) != 0);
  image.format = PNG_FORMAT_RGB;
  Picture picture{image.width, image.height, {}};
  picture.rgb.resize(PNG_IMAGE_SIZE(image));
  REQUIRE(png_image_finish_read(&image, nullptr, picture.rgb.data(), 0, nullptr) != 0);
  return picture;
}

TEST_CASE("a picture survives as PNG", "[convert][preview][roundtrip]") {
  test::Random random(1);
  const Picture picture{37, 21, test::random_octets(random, 37 * 21 * 3)};
  const Picture back = decoded(encode_png(picture));
  CHECK(back.width == 37);
  CHECK(back.height == 21);
  CHECK(back.rgb == picture.rgb);
}

TEST_CASE("every letter of the font is unique", "[convert][preview]") {
  std::set<std::string> shapes;
  for (int letter = ' '; letter <= 0x7f; ++letter) {
    std::string shape;
    for (std::uint32_t y = 0; y < bitmap_font::kHeight; ++y) {
      for (std::uint32_t x = 0; x < bitmap_font::kWidth; ++x) {
        shape += bitmap_font::is_set(static_cast<char>(letter), x, y) ? '#' : '.';
      }
    }
    CAPTURE(static_cast<char>(letter), shape);
    CHECK((shape.find('#') == std::string::npos) == (letter == ' '));
    CHECK(shapes.insert(shape).second);
  }
}

TEST_CASE("pictures are averaged down and repeated up", "[convert][preview]") {
  Picture large{kTileSide * 2, kTileSide, {}};
  for (std::uint32_t i = 0; i < large.width * large.height; ++i) {
    const auto value = static_cast<std::uint8_t>(i % 2 == 0 ? 10 : 30);
    large.rgb.insert(large.rgb.end(), {value, 0, 255});
  }
  const Picture half = fit_tile(large);
  CHECK(half.width == kTileSide);
  CHECK(half.height == kTileSide / 2);
  CHECK(half.rgb[0] == 20);
  CHECK(half.rgb[2] == 255);
  const Picture small{2, 1, {1, 2, 3, 4, 5, 6}};
  const Picture grown = fit_tile(small);
  CHECK(grown.width == kTileSide);
  CHECK(grown.height == kTileSide / 2);
  CHECK(grown.rgb[0] == 1);
  CHECK(grown.rgb[grown.rgb.size() - 1] == 6);
  const auto [width, height] = tile_size(100'000, 1);
  CHECK(width == kTileSide);
  CHECK(height == 1);
}

TEST_CASE("an invalid recipe is ignored", "[convert][preview][malformed]") {
  Inspection facts;
  facts.spec = TensorSpec{DType::kFloat32, Layout::kHwc, 1, 1, 3};
  for (const char* recipe : {R"({"normalize":{"mean":[1,2],"std":[1,2,3]}})", R"({"normalize":5})",
                             R"({"normalize":{"mean":["a","b","c"],"std":[1,1,1]}})", "{}"}) {
    CAPTURE(recipe);
    facts.recipe = StoredRecipe::parse(recipe);
    CHECK(TensorPainter(facts).drawing() == "values times 255");
  }
  facts.recipe = StoredRecipe::parse(R"({"normalize":{"mean":[0.5,0.5,0.5],"std":[0.5,0.5,0.5]}})");
  const float values[] = {-1, 0, 1};
  const Picture tile = TensorPainter(facts).paint(std::as_bytes(std::span(values)));
  CHECK(tile.rgb[0] == 0);
  CHECK(tile.rgb[1] == 128);
  CHECK(tile.rgb[2] == 255);
}

TEST_CASE("text of files is escaped in HTML", "[convert][preview][malformed]") {
  Inspected path;
  path.facts.path = "<a href=\"x\" b='y'>&\x1b\xff<script>.tar";
  path.preview.tiles.push_back({"</div><script>", "\"><img src=x>", {}, "<b>"});
  const std::string html = inspection_page({path});
  CHECK_THAT(html, test::contains("&lt;a href=&quot;x&quot; b=&#39;y&#39;&gt;&amp;\\x1b\\xff"));
  CHECK(html.find("<script") == std::string::npos);
  CHECK(html.find("<img src=x") == std::string::npos);
}

TEST_CASE("a sheet without samples has its heading", "[convert][preview]") {
  Inspected path;
  path.facts.path = "empty.tar";
  const Picture sheet = decoded(contact_sheet({path}));
  CHECK(sheet.width > 3 * kTileSide);
  CHECK(std::ranges::min(sheet.rgb) < 50);  // letters
}

}  // namespace
}  // namespace precache
