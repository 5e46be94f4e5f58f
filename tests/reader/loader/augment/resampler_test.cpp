// SPDX-License-Identifier: Apache-2.0
#include "reader/loader/augment/resampler.hpp"

#include <thread>
#include <vector>

#include "reader/loader/augment/resample_tables.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/resize.hpp"
#include "tests/support/targets.hpp"

namespace precache {
namespace {

using test::below;
using test::Plane;
using test::Random;

constexpr Interpolation kAll[] = {Interpolation::kNearest, Interpolation::kBilinear,
                                  Interpolation::kBicubic};

std::uint32_t number(Random& random, std::uint32_t from, std::uint32_t end) {
  return from + static_cast<std::uint32_t>(below(random, end - from));
}

/// A stored image in memory of just its size, and a rectangle of it.
struct Case {
  ImageShape image;
  std::vector<std::uint8_t> pixels;
  std::uint32_t top, left, height, width;

  [[nodiscard]] PlanarWindow window() const {
    const std::size_t plane = std::size_t{image.height} * image.width;
    return {pixels.data() + std::size_t{top} * image.width + left,
            image.width,
            plane,
            {image.channels, height, width},
            pixels.data() + pixels.size()};
  }
  [[nodiscard]] Plane plane(std::uint32_t channel) const {
    Plane result(height, width);
    const PlanarWindow from = window();
    for (std::uint32_t y = 0; y < height; ++y) {
      for (std::uint32_t x = 0; x < width; ++x) {
        result.at(y, x) = from.first[channel * from.channel + y * from.row + x];
      }
    }
    return result;
  }
};

Case make_case(Random& random, std::uint32_t largest) {
  Case made;
  made.image = {number(random, 1, 4), number(random, 1, largest), number(random, 1, largest)};
  const auto& [channels, height, width] = made.image;
  made.pixels = test::random_octets(random, std::size_t{channels} * height * width);
  if (below(random, 4) == 0) {  // the extremes, where sums leave the range of a pixel
    for (auto& pixel : made.pixels) pixel = pixel < 128 ? 0 : 255;
  }
  // Often up to the last pixel, after which nothing may be read.
  made.height = number(random, 1, height + 1);
  made.width = number(random, 1, width + 1);
  const bool last = below(random, 2) == 0;
  made.top = last ? height - made.height : number(random, 0, height - made.height + 1);
  made.left = last ? width - made.width : number(random, 0, width - made.width + 1);
  return made;
}

void check_case(const Case& made, ImageSize size, Interpolation interpolation, PlanarImage& out,
                ResampleScratch& scratch) {
  CAPTURE(made.height, made.width, size.height, size.width, static_cast<int>(interpolation));
  const Resampler resampler({made.image.height, made.image.width}, size, interpolation);
  resampler.run(made.window(), out, scratch);
  REQUIRE(out.shape() == ImageShape{made.image.channels, size.height, size.width});
  for (std::uint32_t channel = 0; channel < made.image.channels; ++channel) {
    const Plane expected =
        test::resized(made.plane(channel), size.height, size.width, interpolation);
    REQUIRE(std::equal(expected.pixels.begin(), expected.pixels.end(), out.plane(channel)));
  }
}

TEST_CASE("rectangles are resized as Pillow does, pixel by pixel", "[reader][augment]") {
  test::on_every_target([] {
    Random random(5);
    PlanarImage out;
    ResampleScratch scratch;
    for (int i = 0; i < 150; ++i) {
      const Case made = make_case(random, i % 3 == 0 ? 12 : 140);
      ImageSize size{number(random, 1, 150), number(random, 1, 150)};
      if (i % 5 == 0) size.height = made.height;  // one pass less
      if (i % 7 == 0) size.width = made.width;
      check_case(made, size, kAll[i % 3], out, scratch);
    }
  });
}

TEST_CASE("all small sizes are resized to all small sizes", "[reader][augment]") {
  Random random(6);
  PlanarImage out;
  ResampleScratch scratch;
  for (std::uint32_t from = 1; from <= 12; ++from) {
    for (std::uint32_t to = 1; to <= 12; ++to) {
      for (const Interpolation interpolation : kAll) {
        Case made{{1, from, from}, test::random_octets(random, from * from), 0, 0, from, from};
        check_case(made, {to, to}, interpolation, out, scratch);
      }
    }
  }
}

TEST_CASE("images that shrink a lot are resized", "[reader][augment]") {
  test::on_every_target([] {
    Random random(7);
    PlanarImage out;
    ResampleScratch scratch;
    for (const std::uint32_t from : {90U, 300U, 1000U}) {
      for (const std::uint32_t to : {1U, 7U, 64U, 70U}) {
        for (const Interpolation interpolation : kAll) {
          Case made{{1, from, from}, test::random_octets(random, from * from), 0, 0, from, from};
          check_case(made, {to, to}, interpolation, out, scratch);
          made.height = 3;  // wide: the horizontal pass is the long one
          check_case(made, {5, to}, interpolation, out, scratch);
        }
      }
    }
  });
}

TEST_CASE("threads share the tables of a resampler", "[reader][augment][concurrency]") {
  Random random(8);
  const std::uint32_t side = 60;
  const Case whole{{3, side, side}, test::random_octets(random, 3 * side * side), 0, 0, side, side};
  const Resampler resampler({side, side}, {20, 24}, Interpolation::kBilinear);
  const auto sum_of = [&](std::uint32_t first) {
    PlanarImage out;
    ResampleScratch scratch;
    std::uint64_t sum = 0;
    for (std::uint32_t i = 0; i < side; ++i) {
      Case part = whole;
      part.height = 1 + (first + i) % side;
      part.width = 1 + (first + 2 * i) % side;
      resampler.run(part.window(), out, scratch);
      for (std::size_t at = 0; at < out.size(); ++at) sum += out.plane(0)[at] * (at % 251);
    }
    return sum;
  };
  std::vector<std::uint64_t> sums(4);
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < sums.size(); ++i) {
    threads.emplace_back([&, i] { sums[i] = sum_of(i / 2 * 17); });
  }
  for (auto& thread : threads) thread.join();
  for (std::uint32_t i = 0; i < sums.size(); ++i) CHECK(sums[i] == sum_of(i / 2 * 17));
}

TEST_CASE("both halves of a weight make the weight", "[reader][augment]") {
  for (const Filter filter : {Filter::kBilinear, Filter::kBicubic}) {
    for (const std::uint32_t source : {3U, 50U, 224U, 500U}) {
      const VerticalTable table = VerticalTable::make(source, 224, filter);
      const Taps taps = make_taps({source, 224, 0, 224, 0}, filter);
      for (std::size_t y = 0; y < table.rows.size(); ++y) {
        const Taps::Output& output = taps.outputs[y];
        REQUIRE(table.rows[y].first == output.first);
        REQUIRE(table.rows[y].count == output.count);
        for (std::uint32_t i = 0; i < (output.count + 1) / 2 * 2; ++i) {
          const WeightPair& pair = table.pairs[table.rows[y].pairs + i / 2];
          const std::int32_t weight = taps.weights.empty() ? 1 << Taps::kPrecisionBits
                                      : i < output.count   ? taps.weights[output.weights + i]
                                                           : 0;
          if (taps.weights.empty() && i != 0) continue;
          REQUIRE(weight_of(pair, i % 2 == 1) == weight);
        }
      }
    }
  }
}

}  // namespace
}  // namespace precache
