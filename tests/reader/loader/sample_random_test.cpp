// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "reader/loader/epoch_order.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/statistics.hpp"

namespace precache {
namespace {

using test::deviation;
using Values = std::vector<std::uint64_t>;

TEST_CASE("a sample's random numbers are uniform", "[reader][order]") {
  for (const std::uint64_t end : {2U, 3U, 7U, 10U, 33U, 100U, 1000U}) {
    CAPTURE(end);
    Values first(end);
    Values third(end);
    Values of_one(end);
    SampleRandom one(1, 2, 3);
    for (std::uint64_t sample = 0; sample < end * 100; ++sample) {
      SampleRandom random(7, 8, sample);
      ++first.at(random.below(end));
      static_cast<void>(random.below(12345));
      ++third.at(random.below(end));
      ++of_one.at(one.below(end));
    }
    CHECK(std::abs(deviation(first, 100)) < 5);
    CHECK(std::abs(deviation(third, 100)) < 5);
    CHECK(std::abs(deviation(of_one, 100)) < 5);
  }
  SampleRandom random(0, 0, 0);
  std::uint64_t smallest = UINT64_MAX;
  std::uint64_t largest = 0;
  for (int i = 0; i < 1000; ++i) {
    CHECK(random.below(1) == 0);
    const std::uint64_t value = random.below(UINT64_MAX);
    smallest = std::min(smallest, value);
    largest = std::max(largest, value);
  }
  CHECK(smallest < UINT64_MAX / 50);  // missed by chance in one case of 10^8
  CHECK(largest > UINT64_MAX / 50 * 49);
}

TEST_CASE("random numbers of neighbours are independent", "[reader][order]") {
  constexpr std::uint64_t kEnd = 16;
  enum { kSample, kEpoch, kSeed, kNext, kKinds };
  std::vector<Values> pairs(kKinds, Values(kEnd * kEnd));
  for (std::uint64_t i = 0; i < kEnd * kEnd * 100; ++i) {
    SampleRandom random(5, 6, i);
    const std::uint64_t mine = random.below(kEnd);
    ++pairs[kSample][mine * kEnd + SampleRandom(5, 6, i + 1).below(kEnd)];
    ++pairs[kEpoch][mine * kEnd + SampleRandom(5, 7, i).below(kEnd)];
    ++pairs[kSeed][mine * kEnd + SampleRandom(6, 6, i).below(kEnd)];
    ++pairs[kNext][mine * kEnd + random.below(kEnd)];
  }
  for (const Values& counts : pairs) CHECK(std::abs(deviation(counts, 100)) < 5);
}

TEST_CASE("random numbers depend only on seed, epoch and sample", "[reader][order]") {
  const auto three_of = [](SampleRandom random) {
    Values values;
    for (int i = 0; i < 3; ++i) values.push_back(random.below(UINT64_MAX));
    return values;
  };
  std::set<std::uint64_t> seen;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    for (std::uint64_t epoch = 0; epoch < 10; ++epoch) {
      for (std::uint64_t sample = 0; sample < 50; ++sample) {
        for (const auto value : three_of(SampleRandom(seed, epoch, sample))) seen.insert(value);
      }
    }
  }
  CHECK(seen.size() == 10 * 10 * 50 * 3);
  // Draws of other samples in between make no difference.
  SampleRandom a(1, 2, 3);
  SampleRandom b(1, 2, 4);
  Values from_a;
  for (int i = 0; i < 3; ++i) {
    from_a.push_back(a.below(UINT64_MAX));
    static_cast<void>(b.below(10));
    static_cast<void>(three_of(SampleRandom(1, 2, 3)));
  }
  CHECK(from_a == three_of(SampleRandom(1, 2, 3)));
}

}  // namespace
}  // namespace precache
