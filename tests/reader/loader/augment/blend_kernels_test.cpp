// SPDX-License-Identifier: Apache-2.0
#include "reader/loader/augment/blend_kernels.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "reader/loader/augment/blend_table.hpp"
#include "reader/loader/augment/colour_body.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/planar_images.hpp"
#include "tests/support/targets.hpp"

namespace precache::augment {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::size_t kPairs = 256 * 256;

/// Of all pairs of bytes, the one number: those to blend from, or the pixels.
Bytes all_pairs(bool of_pixels) {
  Bytes bytes(kPairs);
  for (std::size_t i = 0; i < kPairs; ++i) {
    bytes[i] = static_cast<std::uint8_t>(of_pixels ? i % 256 : i / 256);
  }
  return bytes;
}

/// Factors as trainers use them, and those whose products are whole numbers or nearly so.
std::vector<float> factors() {
  std::vector<float> all = {0,    0.25F, 0.5F, 1,      1.5F,   2,    3,     100,
                            5000, 1e-9F, 1e6F, 1e-30F, 1e-45F, 0.1F, 0.001F};
  for (const float near : {0.5F, 1.0F, 1.2F, 2.0F}) {
    all.push_back(std::nextafter(near, 0.0F));
    all.push_back(std::nextafter(near, 9.0F));
  }
  for (int tenths = 1; tenths < 20; ++tenths) all.push_back(static_cast<float>(tenths) / 10);
  for (const float power : {24.0F, 25.0F, 26.0F, 30.0F}) all.push_back(std::exp2(-power));
  test::Random random(7);
  for (int i = 0; i < 20; ++i) all.push_back(static_cast<float>(random() % 20000) / 7919);
  return all;
}

TEST_CASE("blends of all pairs of bytes are those of their definition", "[reader][augment]") {
  const Bytes from = all_pairs(false);
  const Bytes pixels = all_pairs(true);
  test::on_every_target([&] {
    for (const float factor : factors()) {
      CAPTURE(factor);
      Bytes result = from;
      blend_from_image(result.data(), pixels.data(), kPairs, factor);
      Bytes expected(kPairs);
      std::transform(from.begin(), from.end(), pixels.begin(), expected.begin(),
                     [&](auto a, auto b) { return blend(a, b, factor); });
      REQUIRE(result == expected);
    }
  });
}

TEST_CASE("lumas of all colours with a few blues are those of their definition",
          "[reader][augment]") {
  Bytes red = all_pairs(false);
  Bytes green = all_pairs(true);
  for (const std::uint32_t blue : {0U, 1U, 100U, 254U, 255U}) {
    Bytes expected(kPairs);
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < kPairs; ++i) {
      expected[i] = luma(red[i], green[i], blue);
      sum += expected[i];
    }
    test::on_every_target([&] {
      Bytes r = red;
      Bytes g = green;
      Bytes b(kPairs, static_cast<std::uint8_t>(blue));
      CHECK(sum_of_luma({r.data(), g.data(), b.data(), kPairs}) == sum);
      replace_by_luma({r.data(), g.data(), b.data(), kPairs});
      CHECK((r == expected && g == expected && b == expected));
    });
  }
}

TEST_CASE("bytes after the last pixel stay as they are", "[reader][augment]") {
  std::array<std::uint8_t, 256> table;
  for (std::size_t i = 0; i < 256; ++i) table[i] = static_cast<std::uint8_t>(255 - i);
  test::on_every_target([&] {
    for (const std::size_t size : {0U, 1U, 15U, 63U, 64U, 65U, 127U, 128U, 200U}) {
      CAPTURE(size);
      Bytes bytes(size, 200);
      bytes.shrink_to_fit();  // AddressSanitizer sees one byte too far
      look_up(bytes.data(), size, table);
      CHECK(bytes == Bytes(size, 55));
      Bytes rows(3 * size + 1, 9);
      blend_from_luma({rows.data(), rows.data() + size, rows.data() + 2 * size, size}, 0);
      blend_from_grey(rows.data(), 3 * size, 7, 0);
      CHECK(rows.back() == 9);
      CHECK(std::count(rows.begin(), rows.end(), 7) == static_cast<std::ptrdiff_t>(3 * size));
    }
  });
}

TEST_CASE("tables exist for every factor that trainers use", "[reader][augment]") {
  for (int i = 0; i <= 1000; ++i) CHECK(blend_table(static_cast<float>(i) / 100));
  for (const float factor : {-0.5F, 1e9F, std::numeric_limits<float>::quiet_NaN()}) {
    CHECK_FALSE(blend_table(factor));
  }
}

}  // namespace
}  // namespace precache::augment
