// SPDX-License-Identifier: Apache-2.0
#include "convert/image/transform/kernels.hpp"

#include <algorithm>

#include "convert/image/decode/image_decoder.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/targets.hpp"

namespace precache {
namespace {

using test::below;
using test::on_every_target;
using test::Random;
using Octets = std::vector<std::uint8_t>;

std::uint8_t rounded(std::int64_t sum) {
  return static_cast<std::uint8_t>(std::clamp<std::int64_t>((sum + (1 << 21)) >> 22, 0, 255));
}

/// Signed weights with the largest sum of magnitudes that 32-bit sums of 255 times them allow.
std::vector<std::int32_t> random_weights(Random& random, std::size_t count) {
  std::vector<std::int32_t> weights(count);
  std::int64_t left = 8'388'607;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t most =
        i + 1 == count ? left : std::min<std::int64_t>(left, 2 * left / 3 + 1);
    const auto magnitude =
        static_cast<std::int64_t>(below(random, static_cast<std::uint64_t>(most) + 1));
    left -= magnitude;
    weights[i] = static_cast<std::int32_t>(below(random, 3) == 0 ? -magnitude : magnitude);
  }
  std::shuffle(weights.begin(), weights.end(), random);
  return weights;
}

Taps random_taps(Random& random, std::uint32_t source, std::uint32_t outputs,
                 std::uint32_t most_taps) {
  Taps taps;
  taps.begin = source;
  for (std::uint32_t i = 0; i < outputs; ++i) {
    const auto count = static_cast<std::uint32_t>(1 + below(random, std::min(source, most_taps)));
    const auto first = static_cast<std::uint32_t>(below(random, source - count + 1));
    taps.outputs.push_back({first, count, taps.weights.size()});
    const auto weights = random_weights(random, count);
    taps.weights.insert(taps.weights.end(), weights.begin(), weights.end());
    taps.begin = std::min(taps.begin, first);
    taps.end = std::max(taps.end, first + count);
  }
  return taps;
}

void check_horizontal(const Taps& taps, const Octets& row) {
  const HorizontalPass pass(taps);
  Octets out(taps.outputs.size() * kPixelBytes + kRowSlack, 0xee);
  pass.run(row.data(), out.data());
  for (std::size_t i = 0; i < taps.outputs.size(); ++i) {
    const auto& output = taps.outputs[i];
    for (std::size_t channel = 0; channel < 3; ++channel) {
      std::int64_t sum = 0;
      std::uint8_t expected = 0;
      for (std::size_t tap = 0; tap < output.count; ++tap) {
        const std::uint8_t value = row[(output.first - taps.begin + tap) * kPixelBytes + channel];
        if (!taps.weights.empty()) sum += std::int64_t{value} * taps.weights[output.weights + tap];
        expected = taps.weights.empty() ? value : rounded(sum);
      }
      if (out[i * kPixelBytes + channel] == expected) continue;
      CAPTURE(i, channel, output.first, output.count);
      FAIL("got " << int{out[i * kPixelBytes + channel]} << ", not " << int{expected});
    }
  }
}

/// The pixels [begin, end) of the source with the slack of every row, in memory of exactly that
/// size.
Octets random_row(Random& random, const Taps& taps, int kind = 0) {
  Octets row = test::random_octets(random, (taps.end - taps.begin) * kPixelBytes + kRowSlack);
  if (kind == 1) std::fill(row.begin(), row.end(), std::uint8_t{255});
  if (kind == 2) {
    for (auto& octet : row) octet = (octet & 1U) != 0 ? 255 : 0;
  }
  return row;
}

TEST_CASE("the horizontal pass is a sum of products on every instruction set",
          "[convert][kernels]") {
  on_every_target([] {
    Random random(1);
    for (std::uint32_t source = 1; source <= 40; ++source) {
      for (const std::uint32_t most_taps : {1U, 2U, 4U, 5U, 8U, 9U, 12U, 40U}) {
        const auto outputs = static_cast<std::uint32_t>(1 + below(random, 20));
        const Taps taps = random_taps(random, source, outputs, most_taps);
        CAPTURE(source, most_taps, outputs);
        for (int kind = 0; kind < 3; ++kind) check_horizontal(taps, random_row(random, taps, kind));
      }
    }
    const Taps many = random_taps(random, 3000, 17, 2500);
    check_horizontal(many, random_row(random, many));
  });
}

TEST_CASE("the horizontal pass follows Pillow's tables on every instruction set",
          "[convert][kernels]") {
  on_every_target([] {
    Random random(2);
    for (const Filter filter :
         {Filter::kNearest, Filter::kBox, Filter::kBilinear, Filter::kBicubic, Filter::kLanczos}) {
      for (const auto& [source, resized] : {std::pair{500U, 341U},
                                            {341U, 500U},
                                            {5000U, 224U},
                                            {3U, 224U},
                                            {224U, 3U},
                                            {1U, 9U},
                                            {100U, 100U}}) {
        const std::uint32_t count = std::min(resized, 224U);
        const Taps taps = make_taps({source, resized, (resized - count) / 2, count, 0}, filter);
        CAPTURE(name(filter), source, resized);
        for (int kind = 0; kind < 3; ++kind) check_horizontal(taps, random_row(random, taps, kind));
      }
    }
  });
}

TEST_CASE("the horizontal pass leaves pixels without a source black", "[convert][kernels]") {
  Taps taps;
  taps.outputs = {{1, 1, 0}, {9, 0, 0}, {2, 1, 0}};
  taps.begin = 1;
  taps.end = 3;
  Random random(3);
  on_every_target([&] { check_horizontal(taps, random_row(random, taps)); });
}

TEST_CASE("the vertical pass is a sum of products on every instruction set", "[convert][kernels]") {
  on_every_target([] {
    Random random(4);
    for (std::size_t bytes = 1; bytes <= 150; ++bytes) {
      for (const std::size_t taps : {1U, 2U, 3U, 4U, 7U, 30U}) {
        std::vector<Octets> rows;
        std::vector<const std::uint8_t*> pointers;
        for (std::size_t i = 0; i < taps; ++i) {
          rows.push_back(test::random_octets(random, bytes + kRowSlack));
          if (bytes % 5 == 0) std::fill(rows[i].begin(), rows[i].end(), std::uint8_t{255});
          pointers.push_back(rows[i].data());
        }
        const auto weights = random_weights(random, taps);
        Octets out(bytes + kRowSlack);
        run_vertical_pass(pointers, weights.data(), bytes, out.data());
        for (std::size_t x = 0; x < bytes; ++x) {
          std::int64_t sum = 0;
          for (std::size_t i = 0; i < taps; ++i) sum += std::int64_t{rows[i][x]} * weights[i];
          if (out[x] == rounded(sum)) continue;
          CAPTURE(bytes, taps, x);
          FAIL("got " << int{out[x]} << ", not " << int{rounded(sum)});
        }
      }
    }
  });
}

TEST_CASE("planes and packed pixels are written exactly on every instruction set",
          "[convert][kernels]") {
  on_every_target([] {
    Random random(5);
    for (std::size_t count = 0; count <= 130; ++count) {
      const Octets pixels = test::random_octets(random, count * kPixelBytes);
      std::vector<Octets> planes(3, Octets(count));  // exact sizes, so that ASan detects an overrun
      split_planes(pixels.data(), count, planes[0].data(), planes[1].data(), planes[2].data());
      Octets packed(count * 3);
      pack_rgb(pixels.data(), count, packed.data());
      for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t channel = 0; channel < 3; ++channel) {
          REQUIRE(planes[channel][i] == pixels[i * kPixelBytes + channel]);
          REQUIRE(packed[i * 3 + channel] == pixels[i * kPixelBytes + channel]);
        }
      }
    }
  });
}

TEST_CASE("planes side by side do not write into each other on any instruction set",
          "[convert][kernels]") {
  on_every_target([] {
    Random random(6);
    for (std::size_t count = 1; count <= 100; ++count) {
      const Octets pixels = test::random_octets(random, count * kPixelBytes);
      Octets tensor(count * 3 + 2, 0xcd);
      split_planes(pixels.data(), count, &tensor[1], &tensor[1 + count], &tensor[1 + 2 * count]);
      CHECK(tensor.front() == 0xcd);
      CHECK(tensor.back() == 0xcd);
      for (std::size_t i = 0; i < count * 3; ++i) {
        REQUIRE(tensor[1 + i] == pixels[i % count * kPixelBytes + i / count]);
      }
    }
  });
}

}  // namespace
}  // namespace precache
