// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <vector>

#include "reader/loader/augment/exponential.hpp"
#include "reader/loader/augment/geometry.hpp"
#include "tests/support/catch.hpp"

namespace precache::augment {
namespace {

constexpr OperationKey kKey{hash_name("RandomResizedCrop"), 0};

OperationRandom random_of(std::uint64_t sample) { return {{1, 2, sample, 0, 0}, kKey}; }

/// Units in the last place between two positive numbers.
std::int64_t distance(double a, double b) {
  return std::abs(std::bit_cast<std::int64_t>(a) - std::bit_cast<std::int64_t>(b));
}

TEST_CASE("exponential and logarithm are those of the C library, but for the last bit",
          "[reader][augment]") {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> powers(-20, 20);
  std::int64_t worst_exponential = 0;
  double worst_logarithm = 0;
  for (int i = 0; i < 200'000; ++i) {
    const double x = i == 0 ? 0 : powers(random);
    worst_exponential = std::max(worst_exponential, distance(exponential_of(x), std::exp(x)));
    const double y = std::exp(x);
    const double error = std::abs(logarithm_of(y) - std::log(y));
    worst_logarithm = std::max(worst_logarithm, error / std::max(std::abs(std::log(y)), 1e-3));
  }
  CHECK(worst_exponential <= 2);
  CHECK(worst_logarithm < 1e-15);
  CHECK(exponential_of(0) == 1);
  CHECK(logarithm_of(1) == 0);
  // The same bits on every machine: these were printed by this code.
  CHECK(exponential_of(0.25) == 0x1.48b5e3c3e8186p+0);
  CHECK(logarithm_of(3.0 / 4.0) == -0x1.269621134db92p-2);
}

TEST_CASE("rounding is to the nearest number, ties to even", "[reader][augment]") {
  for (double x = 0; x < 40; x += 0.125) CHECK(round_half_even(x) == std::nearbyint(x));
}

TEST_CASE("rectangles are inside the image", "[reader][augment]") {
  for (std::uint32_t height = 1; height < 40; height += 3) {
    for (std::uint32_t width = 1; width < 400; width += 37) {
      for (const Range scale :
           {Range{0.08, 1}, Range{1e-6, 1e-5}, Range{1, 1}, Range{5, 9}, Range{0, 1}}) {
        const RandomResizedCrop crop{.height = 8, .width = 8, .scale = scale};
        for (std::uint64_t sample = 0; sample < 50; ++sample) {
          OperationRandom random = random_of(sample);
          const Rectangle r = choose(crop, random, {3, height, width}, std::nullopt);
          CAPTURE(height, width, r.top, r.left, r.height, r.width);
          REQUIRE(r.height >= 1);
          REQUIRE(r.width >= 1);
          REQUIRE(r.top + r.height <= height);
          REQUIRE(r.left + r.width <= width);
        }
      }
    }
  }
}

TEST_CASE("after ten tries, the largest centred rectangle of a valid shape is taken",
          "[reader][augment]") {
  // No shape of the range fits: torchvision's fallback for in_ratio < min, > max, and within.
  const auto chosen = [](std::uint32_t height, std::uint32_t width, Range ratio, Range scale) {
    OperationRandom random = random_of(0);
    return choose(RandomResizedCrop{.height = 8, .width = 8, .scale = scale, .ratio = ratio},
                  random, {3, height, width}, std::nullopt);
  };
  CHECK(chosen(100, 10, {1, 1}, {5, 5}) == Rectangle{45, 0, 10, 10});
  CHECK(chosen(10, 101, {1, 2}, {50, 50}) == Rectangle{0, 40, 10, 20});
  CHECK(chosen(30, 30, {0.5, 2}, {50, 50}) == Rectangle{0, 0, 30, 30});
}

/// torchvision's algorithm with the C library and other random numbers.
Rectangle by_formula(std::mt19937_64& random, std::uint32_t height, std::uint32_t width) {
  const auto uniform = [&](double from, double to) {
    return std::uniform_real_distribution<double>(from, to)(random);
  };
  const double area = static_cast<double>(height) * width;
  for (int i = 0; i < 10; ++i) {
    const double target = area * uniform(0.08, 1);
    const double ratio = std::exp(uniform(std::log(3.0 / 4), std::log(4.0 / 3)));
    const auto w = static_cast<std::uint32_t>(std::nearbyint(std::sqrt(target * ratio)));
    const auto h = static_cast<std::uint32_t>(std::nearbyint(std::sqrt(target / ratio)));
    if (w == 0 || w > width || h == 0 || h > height) continue;
    const auto place = [&](std::uint32_t free) {
      return std::uniform_int_distribution<std::uint32_t>(0, free)(random);
    };
    const std::uint32_t top = place(height - h);
    return {top, place(width - w), h, w};
  }
  return {};
}

/// Compares two samples of counts, in standard deviations of chi-square.
double difference(const std::map<std::uint64_t, std::array<double, 2>>& counts) {
  double sum = 0;
  double freedom = -1;
  for (const auto& [key, pair] : counts) {
    const auto& [a, b] = pair;
    if (a + b < 20) continue;
    sum += (a - b) * (a - b) / (a + b);
    ++freedom;
  }
  return (sum - freedom) / std::sqrt(2 * freedom);
}

TEST_CASE("a million rectangles have torchvision's distribution", "[reader][augment]") {
  constexpr std::uint64_t kDraws = 1'000'000;
  constexpr std::uint32_t kHeight = 40;
  constexpr std::uint32_t kWidth = 56;
  const RandomResizedCrop crop{.height = 8, .width = 8};
  std::mt19937_64 other(3);
  std::map<std::uint64_t, std::array<double, 2>> sizes;
  std::map<std::uint64_t, std::array<double, 2>> places;
  for (std::uint64_t i = 0; i < kDraws; ++i) {
    OperationRandom random = random_of(i);
    const Rectangle ours = choose(crop, random, {3, kHeight, kWidth}, std::nullopt);
    const Rectangle theirs = by_formula(other, kHeight, kWidth);
    for (const int who : {0, 1}) {
      const Rectangle& r = who == 0 ? ours : theirs;
      ++sizes[r.height * 1000 + r.width][static_cast<std::size_t>(who)];
      // Where it is, given how much room there was.
      ++places[(kHeight - r.height) * 1000 + r.top][static_cast<std::size_t>(who)];
      ++places[1'000'000 + (kWidth - r.width) * 1000 + r.left][static_cast<std::size_t>(who)];
    }
  }
  CHECK(std::abs(difference(sizes)) < 5);
  CHECK(std::abs(difference(places)) < 6);  // both axes of a sample are counted together
}

TEST_CASE("rectangles of the original are rounded to whole stored pixels", "[reader][augment]") {
  CHECK(scaled({0, 0, 500, 375}, 500, 375, 320, 320) == Rectangle{0, 0, 320, 320});
  CHECK(scaled({250, 0, 250, 375}, 500, 375, 320, 320) == Rectangle{160, 0, 160, 320});
  CHECK(scaled({1, 1, 2, 2}, 4, 4, 2, 2) == Rectangle{0, 0, 2, 2});  // 0.5 and 1.5, to even
  CHECK(scaled({10, 10, 1, 1}, 1000, 1000, 8, 8) == Rectangle{0, 0, 1, 1});
  CHECK(scaled({999, 999, 1, 1}, 1000, 1000, 8, 8) == Rectangle{7, 7, 1, 1});
  CHECK(scaled({0, 0, 5, 7}, 5, 7, 100, 90) == Rectangle{0, 0, 100, 90});  // it was enlarged
  std::mt19937_64 random(4);
  for (int i = 0; i < 20'000; ++i) {
    const auto side = [&](std::uint32_t most) { return 1 + std::uint32_t(random() % most); };
    const std::uint32_t from_height = side(5000), from_width = side(5000);
    const std::uint32_t height = side(600), width = side(600);
    const std::uint32_t h = side(from_height), w = side(from_width);
    const std::uint32_t top = std::uint32_t(random() % (from_height - h + 1));
    const std::uint32_t left = std::uint32_t(random() % (from_width - w + 1));
    const Rectangle r = scaled({top, left, h, w}, from_height, from_width, height, width);
    REQUIRE(r.height >= 1);
    REQUIRE(r.width >= 1);
    REQUIRE(r.top + r.height <= height);
    REQUIRE(r.left + r.width <= width);
    const double exact = double(top) * height / from_height;
    REQUIRE(std::abs(r.top - exact) <= 1.0);
  }
}

TEST_CASE("draws depend on seed, epoch, sample, repeat, view and operation alone",
          "[reader][augment]") {
  const SampleKey key{1, 2, 3, 0, 0};
  const auto first = [](const SampleKey& of, std::string_view name, std::uint64_t ordinal) {
    return OperationRandom(of, {hash_name(name), ordinal}).bits();
  };
  const std::uint64_t bits = first(key, "RandomResizedCrop", 0);
  CHECK(bits == first(key, "RandomResizedCrop", 0));
  std::vector<std::uint64_t> others{first({2, 1, 3, 0, 0}, "RandomResizedCrop", 0),
                                    first({1, 3, 3, 0, 0}, "RandomResizedCrop", 0),
                                    first({1, 2, 4, 0, 0}, "RandomResizedCrop", 0),
                                    first({1, 2, 3, 1, 0}, "RandomResizedCrop", 0),
                                    first({1, 2, 3, 0, 1}, "RandomResizedCrop", 0),
                                    first(key, "RandomResizedCrop", 1),
                                    first(key, "RandomCrop", 0)};
  others.push_back(bits);
  std::ranges::sort(others);
  CHECK(std::ranges::adjacent_find(others) == others.end());
  CHECK(hash_name("RandomResizedCrop") != hash_name("RandomCrop"));
  CHECK(hash_name("") == 0xcbf29ce484222325U);  // of FNV-1a's authors, and so for "a"
  CHECK(hash_name("a") == 0xaf63dc4c8601ec8cU);
}

TEST_CASE("numbers of an operation are uniform", "[reader][augment]") {
  OperationRandom random(SampleKey{}, kKey);
  std::array<int, 24> orders{};
  double sum = 0;
  int heads = 0;
  constexpr int kCount = 24'000;
  for (int i = 0; i < kCount; ++i) {
    const double x = random.uniform();
    REQUIRE((x >= 0 && x < 1));
    sum += x;
    heads += random.chance(0.25) ? 1 : 0;
    auto order = random.permutation<4>();
    std::array<std::uint8_t, 4> sorted{0, 1, 2, 3};
    std::size_t rank = 0;
    while (sorted != order) {
      std::next_permutation(sorted.begin(), sorted.end());
      ++rank;
      REQUIRE(rank < orders.size());
    }
    ++orders[rank];
  }
  CHECK(std::abs(sum / kCount - 0.5) < 0.01);
  CHECK(std::abs(heads - kCount / 4) < 5 * 68);
  for (const int count : orders) CHECK(std::abs(count - 1000) < 5 * 32);
  CHECK_FALSE(random.chance(0));
  CHECK(random.chance(1));
}

}  // namespace
}  // namespace precache::augment
