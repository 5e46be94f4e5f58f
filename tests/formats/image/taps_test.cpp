// SPDX-License-Identifier: Apache-2.0
#include "formats/image/taps.hpp"

#include <cmath>
#include <cstdlib>

#include "tests/support/bytes.hpp"
#include "tests/support/catch.hpp"

namespace precache {
namespace {

constexpr Filter kFilters[] = {Filter::kBox, Filter::kBilinear, Filter::kBicubic, Filter::kLanczos};
constexpr std::int64_t kOne = std::int64_t{1} << Taps::kPrecisionBits;

AxisGeometry whole(std::uint32_t source, std::uint32_t resized) {
  return {source, resized, 0, resized, 0};
}

/// The invariants of the kernels: taps inside the image, weights that add up to one, halves of 16
/// bits, sums of 32.
void check_taps(const AxisGeometry& axis, const Taps& taps) {
  REQUIRE(taps.outputs.size() == axis.count);
  std::uint32_t begin = axis.source;
  std::uint32_t end = 0;
  for (std::size_t i = 0; i < taps.outputs.size(); ++i) {
    const auto& output = taps.outputs[i];
    CAPTURE(i, output.first, output.count);
    REQUIRE(output.count > 0);
    REQUIRE(output.first + output.count <= axis.source);
    REQUIRE(output.weights + output.count <= taps.weights.size());
    begin = std::min(begin, output.first);
    end = std::max(end, output.first + output.count);
    std::int64_t sum = 0;
    std::int64_t absolute = 0;
    bool halves_fit = true;
    for (std::uint32_t tap = 0; tap < output.count; ++tap) {
      const std::int32_t weight = taps.weights[output.weights + tap];
      sum += weight;
      absolute += std::abs(weight);
      halves_fit = halves_fit && weight >> 11 >= INT16_MIN && weight >> 11 <= INT16_MAX;
    }
    REQUIRE(halves_fit);
    REQUIRE(std::abs(sum - kOne) <= output.count);  // each weight is rounded by at most one half
    REQUIRE(absolute * 255 + kOne / 2 <= INT32_MAX);
  }
  REQUIRE(taps.begin == begin);
  REQUIRE(taps.end == end);
}

TEST_CASE("taps of every pair of small sizes are sound", "[convert][taps]") {
  for (const Filter filter : kFilters) {
    for (std::uint32_t source = 1; source <= 48; ++source) {
      for (std::uint32_t resized = 1; resized <= 48; ++resized) {
        if (source == resized) continue;
        CAPTURE(name(filter), source, resized);
        check_taps(whole(source, resized), make_taps(whole(source, resized), filter));
      }
    }
  }
}

TEST_CASE("taps of common and extreme sizes are sound", "[convert][taps]") {
  test::Random random(1);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> sizes{
      {500, 341}, {375, 256},  {65535, 224}, {65535, 1},     {1, 16384},
      {2, 16384}, {3, 16383},  {16384, 3},   {65535, 16384}, {224, 225},
      {225, 224}, {1000, 999}, {999, 1000},  {400'000, 224}, {400'000, 1}};
  for (int i = 0; i < 60; ++i) {
    sizes.emplace_back(1 + test::below(random, 6000), 1 + test::below(random, 600));
  }
  for (const Filter filter : kFilters) {
    for (const auto& [source, resized] : sizes) {
      if (source == resized) continue;
      CAPTURE(name(filter), source, resized);
      check_taps(whole(source, resized), make_taps(whole(source, resized), filter));
    }
  }
}

TEST_CASE("taps at the edge of a huge enlargement are sound", "[convert][taps]") {
  // Only the middle of a line of pixels with an enlarged short side is computed.
  for (const Filter filter : kFilters) {
    for (const std::uint32_t source : {3000U, 65535U, 1U << 17}) {
      const std::uint32_t resized = source * 16384;
      const AxisGeometry axis{source, resized, resized / 2 - 112, 224, 0};
      CAPTURE(name(filter), source);
      check_taps(axis, make_taps(axis, filter));
      const AxisGeometry last{source, resized, resized - 224, 224, 0};
      check_taps(last, make_taps(last, filter));
    }
  }
}

TEST_CASE("taps of a part are those of the whole", "[convert][taps]") {
  for (const Filter filter :
       {Filter::kNearest, Filter::kBox, Filter::kBilinear, Filter::kBicubic, Filter::kLanczos}) {
    for (const auto& [source, resized] :
         {std::pair{500U, 341U}, {341U, 500U}, {100U, 100U}, {7U, 90U}}) {
      const Taps all = make_taps(whole(source, resized), filter);
      const Taps part = make_taps({source, resized, 20, 50, 3}, filter);
      REQUIRE(part.outputs.size() == 50);
      for (std::size_t i = 0; i < 50; ++i) {
        REQUIRE(part.outputs[i].first == all.outputs[i + 20].first);
        REQUIRE(part.outputs[i].count == all.outputs[i + 20].count);
        for (std::uint32_t tap = 0; !all.weights.empty() && tap < part.outputs[i].count; ++tap) {
          REQUIRE(part.weights[part.outputs[i].weights + tap] ==
                  all.weights[all.outputs[i + 20].weights + tap]);
        }
      }
    }
  }
}

TEST_CASE("taps are the same from both ends", "[convert][taps]") {
  for (const Filter filter : {Filter::kBilinear, Filter::kBicubic, Filter::kLanczos}) {
    for (const auto& [source, resized] :
         {std::pair{64U, 16U}, {500U, 250U}, {16U, 64U}, {96U, 24U}}) {
      const Taps taps = make_taps(whole(source, resized), filter);
      for (std::size_t i = 0; i < resized; ++i) {
        const auto& left = taps.outputs[i];
        const auto& right = taps.outputs[resized - 1 - i];
        CAPTURE(name(filter), source, resized, i);
        REQUIRE(left.first + left.count == source - right.first);
        REQUIRE(left.count == right.count);
        for (std::uint32_t tap = 0; tap < left.count; ++tap) {
          const int difference = taps.weights[left.weights + tap] -
                                 taps.weights[right.weights + right.count - 1 - tap];
          REQUIRE(std::abs(difference) <= 1);
        }
      }
    }
  }
}

TEST_CASE("taps of small cases equal those computed by hand", "[convert][taps][golden]") {
  const auto weights_of = [](const Taps& taps, std::size_t i) {
    const auto begin = taps.weights.begin() + static_cast<std::ptrdiff_t>(taps.outputs[i].weights);
    return std::vector<std::int32_t>(begin,
                                     begin + static_cast<std::ptrdiff_t>(taps.outputs[i].count));
  };
  const auto fixed = [](std::initializer_list<double> fractions) {
    std::vector<std::int32_t> weights;
    for (const double fraction : fractions)
      weights.push_back(static_cast<std::int32_t>(std::lround(fraction * kOne)));
    return weights;
  };
  const Taps box = make_taps(whole(4, 2), Filter::kBox);
  CHECK(weights_of(box, 0) == fixed({0.5, 0.5}));
  CHECK(box.outputs[1].first == 2);
  // Triangle of half-width 2 around 1: 3/4, 3/4, 1/4, and the pixel before is missing.
  const Taps bilinear = make_taps(whole(4, 2), Filter::kBilinear);
  CHECK(weights_of(bilinear, 0) == fixed({3.0 / 7, 3.0 / 7, 1.0 / 7}));
  CHECK(bilinear.outputs[1].first == 1);
  // Twice as large: pixel 1 is at 0.75 of the source.
  const Taps larger = make_taps(whole(2, 4), Filter::kBilinear);
  CHECK(weights_of(larger, 1) == fixed({0.75, 0.25}));
  CHECK(weights_of(larger, 0) == fixed({1.0}));
  const Taps cubic = make_taps(whole(8, 16), Filter::kBicubic);
  CHECK(weights_of(cubic, 7) == fixed({-9.0 / 128, 111.0 / 128, 29.0 / 128, -3.0 / 128}));
}

TEST_CASE("taps of an axis that keeps its size copy it", "[convert][taps]") {
  for (const Filter filter : {Filter::kNearest, Filter::kBilinear, Filter::kLanczos}) {
    const Taps taps = make_taps({10, 10, 3, 5, 0}, filter);
    CHECK(taps.weights.empty());
    CHECK(taps.begin == 3);
    CHECK(taps.end == 8);
    for (std::uint32_t i = 0; i < 5; ++i) {
      CHECK(taps.outputs[i].first == i + 3);
      CHECK(taps.outputs[i].count == 1);
    }
  }
}

TEST_CASE("nearest taps take the pixel under the middle of each output", "[convert][taps]") {
  test::Random random(3);
  for (int round = 0; round < 300; ++round) {
    const auto source = static_cast<std::uint32_t>(1 + test::below(random, 1000));
    const auto resized = static_cast<std::uint32_t>(1 + test::below(random, 1000));
    const Taps taps = make_taps(whole(source, resized), Filter::kNearest);
    REQUIRE(taps.outputs.size() == resized);
    CHECK(taps.weights.empty());
    for (std::uint64_t i = 0; i < resized; ++i) {
      const std::uint64_t numerator = (2 * i + 1) * source;
      if (numerator % (2 * std::uint64_t{resized}) == 0)
        continue;  // on an edge: rounding errors decide
      CAPTURE(source, resized, i);
      REQUIRE(taps.outputs[i].count == 1);
      REQUIRE(taps.outputs[i].first == numerator / (2 * std::uint64_t{resized}));
    }
  }
}

}  // namespace
}  // namespace precache
