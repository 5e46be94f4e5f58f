// SPDX-License-Identifier: Apache-2.0
#include "convert/image/transform/image_transform.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <array>

#include "formats/os/file.hpp"
#include "precache/convert/build.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/corpora.hpp"
#include "tests/support/pictures.hpp"
#include "tests/support/threads.hpp"

namespace precache {
namespace {

using test::Bytes;
using test::Picture;

constexpr Filter kFilters[] = {Filter::kNearest, Filter::kBox, Filter::kBilinear, Filter::kBicubic,
                               Filter::kLanczos};

Recipe recipe_of(std::uint32_t height, std::uint32_t width, Fit fit, Filter filter) {
  Recipe recipe;
  recipe.height = height;
  recipe.width = width;
  recipe.fit = fit;
  recipe.filter = filter;
  recipe.layout = Layout::kHwc;
  return recipe;
}

/// One pass over a whole picture, in the simplest way. `along` is the distance of neighbours, in
/// samples.
Picture resized(const Picture& in, const Taps& taps, bool horizontal) {
  const auto count = static_cast<std::uint32_t>(taps.outputs.size());
  Picture out{horizontal ? count : in.width, horizontal ? in.height : count, in.channels, {}};
  for (std::uint32_t y = 0; y < out.height; ++y) {
    for (std::uint32_t x = 0; x < out.width; ++x) {
      const auto& output = taps.outputs[horizontal ? x : y];
      for (std::uint32_t c = 0; c < in.channels; ++c) {
        std::int64_t sum = 0;
        for (std::uint32_t tap = 0; tap < output.count; ++tap) {
          const std::uint32_t at = output.first + tap;
          const std::int64_t value = (horizontal ? in.pixel(at, y) : in.pixel(x, at))[c];
          sum += value * (taps.weights.empty() ? std::int64_t{1} << 22
                                               : taps.weights[output.weights + tap]);
        }
        out.samples.push_back(
            static_cast<std::uint8_t>(std::clamp<std::int64_t>((sum + (1 << 21)) >> 22, 0, 255)));
      }
    }
  }
  return out;
}

/// The expected tensor: the whole picture is resized, then placed into the tensor.
Picture expected_tensor(const Recipe& recipe, const Picture& picture) {
  const Geometry geometry = make_geometry(recipe, picture.width, picture.height);
  const Taps horizontal = make_taps(geometry.horizontal, recipe.filter);
  const Taps vertical = make_taps(geometry.vertical, recipe.filter);
  const Picture content = geometry.vertical_first()
                              ? resized(resized(picture, vertical, false), horizontal, true)
                              : resized(resized(picture, horizontal, true), vertical, false);
  Picture tensor{recipe.width, recipe.height, picture.channels, {}};
  tensor.samples.assign(std::size_t{tensor.width} * tensor.height * tensor.channels,
                        recipe.pad_value);
  if (content.samples.empty()) return tensor;
  for (std::uint32_t y = 0; y < content.height; ++y) {
    const auto at = (std::size_t{y + geometry.vertical.placed_at} * tensor.width +
                     geometry.horizontal.placed_at) *
                    tensor.channels;
    std::copy_n(content.pixel(0, y), content.width * content.channels,
                tensor.samples.begin() + static_cast<std::ptrdiff_t>(at));
  }
  return tensor;
}

std::vector<std::uint8_t> transformed(ImageTransform& transform, const Recipe& recipe,
                                      const Bytes& file) {
  std::vector<std::uint8_t> tensor(recipe.spec().size_bytes(), 0xa5);
  const auto rejection = transform.run(file, std::as_writable_bytes(std::span(tensor)));
  if (rejection) FAIL(name(rejection->stage) << ": " << rejection->reason);
  return tensor;
}

TEST_CASE("streamed rows give the same result as the whole picture", "[convert][transform]") {
  const std::vector<std::pair<std::uint32_t, std::uint32_t>> sizes{
      {50, 40}, {40, 50}, {16, 12}, {7, 90},  {90, 7},
      {1, 1},   {1, 30},  {30, 1},  {12, 16}, {200, 31}};
  for (const Fit fit : {Fit::kCrop, Fit::kStretch, Fit::kPad}) {
    for (const Filter filter : kFilters) {
      Recipe recipe = recipe_of(12, 16, fit, filter);
      if (fit == Fit::kPad) recipe.pad_value = 77;
      ImageTransform transform(recipe, kDefaultMaxPixels);
      for (const auto& [width, height] : sizes) {
        for (const bool interlaced : {false, true}) {
          const Picture picture = test::make_picture(width, height, 3, width + height);
          CAPTURE(name(fit), name(filter), width, height, interlaced);
          REQUIRE(transformed(transform, recipe, test::encode_png(picture, interlaced)) ==
                  expected_tensor(recipe, picture).samples);
        }
      }
    }
  }
}

TEST_CASE("a crop smaller or larger than the resized image is centred", "[convert][transform]") {
  for (const std::uint32_t resize : {5U, 12U, 40U, 200U}) {
    Recipe recipe = recipe_of(20, 30, Fit::kCrop, Filter::kBicubic);
    recipe.resize = resize;
    ImageTransform transform(recipe, kDefaultMaxPixels);
    for (const auto& [width, height] : {std::pair{33U, 21U}, {21U, 33U}, {64U, 64U}, {3U, 2U}}) {
      const Picture picture = test::make_picture(width, height);
      CAPTURE(resize, width, height);
      REQUIRE(transformed(transform, recipe, test::encode_png(picture)) ==
              expected_tensor(recipe, picture).samples);
    }
  }
}

TEST_CASE("very long images are resized correctly", "[convert][transform]") {
  for (const auto& [width, height] : {std::pair{20'000U, 1U}, {1U, 20'000U}, {9000U, 3U}}) {
    const Picture picture = test::make_picture(width, height);
    const Bytes file = test::encode_png(picture);
    for (const Fit fit : {Fit::kCrop, Fit::kStretch}) {
      const Recipe recipe = recipe_of(5, 4, fit, Filter::kLanczos);
      ImageTransform transform(recipe, kDefaultMaxPixels);
      CAPTURE(width, height, name(fit));
      REQUIRE(transformed(transform, recipe, file) == expected_tensor(recipe, picture).samples);
    }
    // Fitted into the tensor, no pixel is left.
    const Recipe recipe = recipe_of(5, 4, Fit::kPad, Filter::kLanczos);
    ImageTransform transform(recipe, kDefaultMaxPixels);
    if (height == 1)
      CHECK(transformed(transform, recipe, file) == std::vector<std::uint8_t>(60, 0));
  }
}

TEST_CASE("oriented JPEGs are resized as a viewer shows them", "[convert][transform]") {
  for (int orientation = 1; orientation <= 8; ++orientation) {
    test::JpegOptions options;
    options.app1 = test::exif_with_orientation(orientation);
    const std::uint32_t width = 45;
    const std::uint32_t height = 30;
    const Bytes file = test::encode_jpeg(test::make_picture(width, height), options);
    const auto stored = test::decode_jpeg_plainly(file);
    const bool turned = orientation > 4;
    Picture shown{turned ? height : width, turned ? width : height, 3, {}};
    for (std::uint32_t y = 0; y < shown.height; ++y) {
      for (std::uint32_t x = 0; x < shown.width; ++x) {
        std::uint32_t sx = turned ? y : x;
        std::uint32_t sy = turned ? x : y;
        if (orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8)
          sx = width - 1 - sx;
        if (orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7)
          sy = height - 1 - sy;
        const auto* pixel = &stored[(std::size_t{sy} * width + sx) * 4];
        shown.samples.insert(shown.samples.end(), pixel, pixel + 3);
      }
    }
    for (const Fit fit : {Fit::kCrop, Fit::kStretch, Fit::kPad}) {
      Recipe recipe = recipe_of(11, 17, fit, Filter::kBilinear);
      ImageTransform transform(recipe, kDefaultMaxPixels);
      CAPTURE(orientation, name(fit));
      CHECK(transformed(transform, recipe, file) == expected_tensor(recipe, shown).samples);
      recipe.apply_exif = false;
      const Picture as_stored = [&] {
        Picture picture{width, height, 3, {}};
        for (std::size_t i = 0; i < stored.size(); ++i) {
          if (i % 4 != 3) picture.samples.push_back(stored[i]);
        }
        return picture;
      }();
      ImageTransform ignoring(recipe, kDefaultMaxPixels);
      CHECK(transformed(ignoring, recipe, file) == expected_tensor(recipe, as_stored).samples);
    }
  }
}

TEST_CASE("colours become gray before the resize, as in Pillow", "[convert][transform]") {
  const Picture picture = test::make_picture(40, 30);
  Picture gray{40, 30, 1, {}};
  for (std::uint32_t y = 0; y < 30; ++y) {
    for (std::uint32_t x = 0; x < 40; ++x) {
      const auto* p = picture.pixel(x, y);
      gray.samples.push_back(static_cast<std::uint8_t>(
          (p[0] * 19595U + p[1] * 38470U + p[2] * 7471U + 0x8000U) >> 16));
    }
  }
  Recipe recipe = recipe_of(12, 16, Fit::kCrop, Filter::kBicubic);
  recipe.color = Color::kGray;
  ImageTransform transform(recipe, kDefaultMaxPixels);
  CHECK(transformed(transform, recipe, test::encode_png(picture)) ==
        expected_tensor(recipe, gray).samples);
  CHECK(transformed(transform, recipe, test::encode_png(gray)) ==
        expected_tensor(recipe, gray).samples);
}

TEST_CASE("files of the wrong kind and images over the limit are rejected",
          "[convert][transform][malformed]") {
  const Recipe recipe = recipe_of(4, 4, Fit::kCrop, Filter::kBilinear);
  ImageTransform transform(recipe, 100);
  Bytes tensor(recipe.spec().size_bytes());
  const auto rejection = [&](const Bytes& file) { return transform.run(file, tensor).value(); };
  CHECK_THAT(rejection({}).reason, test::contains("empty"));
  CHECK_THAT(rejection(test::bytes_of("GIF89a...")).reason, test::contains("GIF"));
  CHECK(rejection(test::encode_png(test::make_picture(101, 1))).stage == RejectionStage::kLimit);
  CHECK(rejection(test::encode_jpeg(test::make_picture(11, 10))).stage == RejectionStage::kLimit);
  ImageTransform unlimited(recipe, UINT64_MAX);
  for (const auto& [width, height] : {std::pair{kLongestSide + 1, 1U}, {1U, kLongestSide + 1}}) {
    const auto too_long =
        unlimited.run(test::encode_png(test::make_picture(width, height, 1)), tensor);
    REQUIRE(too_long);
    CHECK(too_long->stage == RejectionStage::kLimit);
  }
  Bytes small_file = test::encode_png(test::make_picture(4, 3));
  small_file[18] = std::byte{0xff};  // 65,284 pixels wide
  CHECK_THAT(unlimited.run(small_file, tensor).value().reason, test::contains("too few"));
  CHECK_FALSE(transform.run(test::encode_png(test::make_picture(10, 10)), tensor));
  CHECK_FALSE(transform.run(test::encode_jpeg(test::make_picture(100, 1)), tensor));
}

TEST_CASE("a bad file does not affect the next image", "[convert][transform][malformed]") {
  const Recipe recipe = recipe_of(12, 16, Fit::kCrop, Filter::kBilinear);
  ImageTransform transform(recipe, kDefaultMaxPixels);
  Bytes tensor(recipe.spec().size_bytes());
  const Picture picture = test::make_picture(50, 40);
  const Bytes png = test::encode_png(picture);
  const Bytes jpeg = test::encode_jpeg(picture);
  const auto good = transformed(transform, recipe, jpeg);
  for (const Bytes& file : {png, jpeg}) {
    for (std::size_t size = 20; size < file.size() - 20; size += file.size() / 13) {
      CHECK(transform.run(test::cut(file, size), tensor));
      CHECK(transformed(transform, recipe, jpeg) == good);
      CHECK_FALSE(transform.warned());
      CHECK(transformed(transform, recipe, png) == expected_tensor(recipe, picture).samples);
    }
  }
}

TEST_CASE("cached tables of many image sizes are not mixed up", "[convert][transform]") {
  const Recipe recipe = recipe_of(6, 5, Fit::kCrop, Filter::kBilinear);
  ImageTransform transform(recipe, kDefaultMaxPixels);
  for (int round = 0; round < 2; ++round) {
    for (std::uint32_t size = 7; size < 160; ++size) {
      const Picture picture = test::make_picture(size, size + 3);
      REQUIRE(transformed(transform, recipe, test::encode_png(picture)) ==
              expected_tensor(recipe, picture).samples);
    }
  }
}

TEST_CASE("transforms on several threads do not disturb each other",
          "[convert][transform][concurrency]") {
  const Recipe recipe = recipe_of(12, 16, Fit::kCrop, Filter::kLanczos);
  std::vector<Bytes> files;
  std::vector<std::vector<std::uint8_t>> expected;
  for (std::uint32_t i = 0; i < 12; ++i) {
    const Picture picture = test::make_picture(30 + i, 40 - i, 3, i);
    files.push_back(i % 2 == 0 ? test::encode_png(picture) : test::encode_jpeg(picture));
    ImageTransform transform(recipe, kDefaultMaxPixels);
    expected.push_back(transformed(transform, recipe, files.back()));
  }
  std::array<int, 4> wrong{};
  test::on_threads(wrong.size(), [&](std::size_t thread) {
    ImageTransform transform(recipe, kDefaultMaxPixels);
    for (std::size_t i = 0; i < files.size(); ++i) {
      const std::size_t at = (i * 5 + thread) % files.size();
      Bytes tensor(recipe.spec().size_bytes());
      const bool rejected = transform.run(files[at], tensor).has_value();
      const bool equal = std::ranges::equal(std::as_bytes(std::span(expected[at])), tensor);
      wrong[thread] += rejected || !equal ? 1 : 0;
    }
  });
  CHECK(wrong == std::array<int, 4>{});
}

TEST_CASE("third-party bad files are decoded or rejected in bounded memory",
          "[convert][transform][malformed]") {
  auto files = test::corpus("jpeg-bad");
  const auto pngs = test::corpus("png-bad");
  files.insert(files.end(), pngs.begin(), pngs.end());
  if (files.empty()) PRECACHE_SKIP("there are no corpora jpeg-bad and png-bad");
  const auto peak_kib = [] {
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
  };
  const auto before = peak_kib();
  std::size_t rejected = 0;
  for (const Fit fit : {Fit::kCrop, Fit::kStretch, Fit::kPad}) {
    Recipe recipe =
        recipe_of(224, 224, fit, fit == Fit::kCrop ? Filter::kBilinear : Filter::kLanczos);
    if (fit == Fit::kStretch) recipe.color = Color::kGray;
    ImageTransform transform(recipe, 20'000'000);
    for (const auto& path : files) {
      Bytes tensor(recipe.spec().size_bytes());
      INFO(path.filename().string());
      const auto rejection = transform.run(read_file(path), tensor);
      if (!rejection) continue;
      ++rejected;
      CHECK(!rejection->reason.empty());
      CHECK((rejection->stage == RejectionStage::kDecode ||
             rejection->stage == RejectionStage::kLimit));
    }
  }
  CHECK(rejected > files.size());
  // 80 MB for the pixels of an interlaced or progressive image, and some more for the rest.
  CHECK(peak_kib() - before < 600 * 1024);
}

}  // namespace
}  // namespace precache
