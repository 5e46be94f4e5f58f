// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <vector>

#include "precache/formats/error.hpp"
#include "reader/loader/epoch_order.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/statistics.hpp"

namespace precache {
namespace {

using test::correlation;
using test::deviation;
using test::is_bijection;
using Values = std::vector<std::uint64_t>;

constexpr Shuffle kShuffles[] = {Shuffle::kNone, Shuffle::kBlock, Shuffle::kFull};

Values order_of(std::uint64_t samples, const OrderOptions& options, std::uint64_t seed,
                std::uint64_t epoch) {
  const EpochOrder order(samples, options, seed, epoch);
  Values values(samples);
  for (std::uint64_t i = 0; i < samples; ++i) values[i] = order[i];
  return values;
}

Values numbers_up_to(std::uint64_t size) {
  Values values(size);
  std::iota(values.begin(), values.end(), 0);
  return values;
}

/// The ends of the windows of a block shuffle, found from the order alone; empty if a window does
/// not consist of the right number of whole blocks.
Values window_ends(const Values& order, std::uint64_t rows, std::uint64_t window_blocks) {
  const std::uint64_t samples = order.size();
  const std::uint64_t blocks = (samples + rows - 1) / rows;
  const std::uint64_t missing = blocks * rows - samples;
  Values ends;
  std::uint64_t begin = 0;
  for (std::uint64_t left = blocks; left != 0;) {
    const std::uint64_t window = std::min(left, window_blocks);
    // The window is shorter if it has the last block, the only short one.
    std::uint64_t size = window * rows - missing;
    if (begin + size > samples) return {};
    const auto at = order.begin() + static_cast<std::ptrdiff_t>(begin);
    const bool has_short = std::any_of(at, at + static_cast<std::ptrdiff_t>(size),
                                       [&](auto value) { return value / rows == blocks - 1; });
    if (!has_short) size += missing;
    if (begin + size > samples) return {};
    std::set<std::uint64_t> held;
    for (std::uint64_t i = begin; i < begin + size; ++i) held.insert(order[i] / rows);
    // No value comes twice, so this many blocks are complete.
    if (held.size() != window) return {};
    begin += size;
    left -= window;
    ends.push_back(begin);
  }
  return begin == samples ? ends : Values{};
}

/// Counts values by bucket of position and bucket of value.
Values by_position(const Values& values, std::uint64_t end, std::uint64_t buckets) {
  Values counts(buckets * buckets);
  for (std::uint64_t i = 0; i < values.size(); ++i) {
    ++counts[i * buckets / values.size() * buckets + values[i] * buckets / end];
  }
  return counts;
}

std::uint64_t neighbours_in(const Values& values) {
  std::uint64_t pairs = 0;
  for (std::size_t i = 0; i + 1 < values.size(); ++i) {
    pairs += values[i] + 1 == values[i + 1] || values[i] == values[i + 1] + 1;
  }
  return pairs;
}

TEST_CASE("every order is a permutation of the samples", "[reader][order]") {
  for (std::uint64_t samples = 0; samples <= 40; ++samples) {
    for (const std::uint64_t rows : {1U, 2U, 3U, 5U, 7U, 8U, 39U, 1000U}) {
      for (const std::uint64_t window : {1U, 2U, 3U, 4U, 100U}) {
        for (const auto& [seed, epoch] : {std::pair{0, 0}, {1, 0}, {0, 1}, {77, 123}}) {
          for (const Shuffle shuffle : kShuffles) {
            CAPTURE(samples, rows, window, seed, epoch, name(shuffle));
            const EpochOrder order(samples, {shuffle, rows, window}, seed, epoch);
            REQUIRE(order.samples() == samples);
            REQUIRE(is_bijection(order_of(samples, {shuffle, rows, window}, seed, epoch)));
          }
        }
      }
    }
  }
}

TEST_CASE("larger orders are permutations too", "[reader][order]") {
  for (const std::uint64_t samples : {1000U, 4095U, 4096U, 4097U, 50'001U}) {
    for (const std::uint64_t rows : {1U, 63U, 64U, 1024U, 49'999U}) {
      for (const std::uint64_t window : {1U, 7U, 64U}) {
        for (const Shuffle shuffle : {Shuffle::kBlock, Shuffle::kFull}) {
          CAPTURE(samples, rows, window, name(shuffle));
          REQUIRE(is_bijection(order_of(samples, {shuffle, rows, window}, rows, window)));
        }
      }
    }
  }
}

TEST_CASE("without a shuffle, the order is that of storage", "[reader][order]") {
  CHECK(order_of(1000, {}, 5, 6) == numbers_up_to(1000));
  CHECK(EpochOrder(UINT64_MAX, {}, 5, 6)[UINT64_MAX - 1] == UINT64_MAX - 1);
}

TEST_CASE("windows of a block shuffle hold whole blocks of neighbours", "[reader][order]") {
  for (std::uint64_t samples = 1; samples <= 60; ++samples) {
    for (const std::uint64_t rows : {1U, 2U, 3U, 7U, 8U, 31U, 60U, 1000U}) {
      for (const std::uint64_t window : {1U, 2U, 3U, 5U, 100U}) {
        for (std::uint64_t seed = 0; seed < 6; ++seed) {
          CAPTURE(samples, rows, window, seed);
          const Values order = order_of(samples, {Shuffle::kBlock, rows, window}, seed, 3);
          const std::uint64_t real_rows = std::min(rows, samples);
          REQUIRE_FALSE(window_ends(order, real_rows, window).empty());
        }
      }
    }
  }
  const Values large = order_of(100'000, {Shuffle::kBlock, 64, 64}, 1, 0);
  CHECK(window_ends(large, 64, 64).size() == 25);
}

TEST_CASE("the short block can be in any window and at any place", "[reader][order]") {
  // 22 samples in blocks of 4: the last has 2. Windows of 2, 2 and 2 blocks.
  std::set<std::uint64_t> lengths_seen;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const Values ends = window_ends(order_of(22, {Shuffle::kBlock, 4, 2}, seed, 0), 4, 2);
    REQUIRE(ends.size() == 3);
    lengths_seen.insert(ends[0] * 100 + ends[1]);
  }
  CHECK(lengths_seen == std::set<std::uint64_t>{6 * 100 + 14, 8 * 100 + 14, 8 * 100 + 16});
}

TEST_CASE("an order of any size stays in its range and repeats no value", "[reader][order]") {
  constexpr std::uint64_t kHuge = (std::uint64_t{1} << 62) + 12345;
  for (const OrderOptions& options :
       {OrderOptions{Shuffle::kFull, 0, 0}, OrderOptions{Shuffle::kBlock, 64, 64},
        OrderOptions{Shuffle::kBlock, kHuge - 1, 2}, OrderOptions{Shuffle::kBlock, kHuge / 2, 3},
        OrderOptions{Shuffle::kBlock, 1, kHuge - 1}, OrderOptions{Shuffle::kBlock, UINT64_MAX, 1},
        OrderOptions{Shuffle::kBlock, 1, UINT64_MAX},
        OrderOptions{Shuffle::kBlock, UINT64_MAX, UINT64_MAX}}) {
    CAPTURE(name(options.shuffle), options.block_rows, options.window_blocks);
    const EpochOrder order(kHuge, options, 9, 9);
    std::set<std::uint64_t> seen;
    for (std::uint64_t i = 0; i < 500; ++i) {
      seen.insert(order[i]);
      seen.insert(order[kHuge / 2 + i]);
      seen.insert(order[kHuge - 1 - i]);
    }
    CHECK(seen.size() == 1500);
    CHECK(*seen.rbegin() < kHuge);
  }
}

TEST_CASE("a block shuffle of empty blocks or windows is refused", "[reader][order][malformed]") {
  const auto refusal = [](std::uint64_t rows, std::uint64_t window) {
    return test::message_of<InvalidArgument>([&] {
      EpochOrder(10, {Shuffle::kBlock, rows, window}, 0, 0);
    });
  };
  CHECK_THAT(refusal(0, 1), test::contains("block_rows"));
  CHECK_THAT(refusal(1, 0), test::contains("window_blocks"));
  CHECK_THROWS_AS(EpochOrder(0, {Shuffle::kBlock, 0, 1}, 0, 0), InvalidArgument);
}

TEST_CASE("every seed and epoch has a different order", "[reader][order]") {
  for (const Shuffle shuffle : {Shuffle::kBlock, Shuffle::kFull}) {
    CAPTURE(name(shuffle));
    const OrderOptions options{shuffle, 8, 4};
    std::set<Values> seen{numbers_up_to(100)};
    for (std::uint64_t seed = 0; seed < 30; ++seed) {
      for (std::uint64_t epoch = 0; epoch < 30; ++epoch) {
        seen.insert(order_of(100, options, seed, epoch));
      }
    }
    for (int bit = 5; bit < 64; ++bit) {
      seen.insert(order_of(100, options, std::uint64_t{1} << bit, 0));
      seen.insert(order_of(100, options, 0, std::uint64_t{1} << bit));
    }
    CHECK(seen.size() == 1 + 30 * 30 + 2 * 59);
    CHECK(order_of(100, options, 1, 2) != order_of(100, options, 2, 1));
    CHECK(order_of(100, options, 4, 2) == order_of(100, options, 4, 2));
  }
}

TEST_CASE("a full shuffle leaves no trace of the order of storage", "[reader][order]") {
  constexpr std::uint64_t kSamples = 100'000;
  const double sigma = 1 / std::sqrt(kSamples - 1.0);
  const Values positions = numbers_up_to(kSamples);
  Values before = positions;
  for (const auto& [seed, epoch] : {std::pair{0, 0}, {0, 1}, {0, 2}, {1, 0}, {2, 1}}) {
    CAPTURE(seed, epoch);
    const Values order = order_of(kSamples, {Shuffle::kFull}, seed, epoch);
    CHECK(std::abs(correlation(positions, order)) < 5 * sigma);
    CHECK(std::abs(correlation(before, order)) < 5 * sigma);  // nor of the previous epoch
    CHECK(neighbours_in(order) < 12);  // 2 on average: more than 11 in one case of 10^6
    // All sums of rows and columns are fixed.
    CHECK(std::abs(deviation(by_position(order, kSamples, 16), kSamples / 256.0, 31)) < 5);
    before = order;
  }
}

TEST_CASE("a block shuffle spreads blocks over the epoch", "[reader][order]") {
  constexpr std::uint64_t kRows = 16;
  constexpr std::uint64_t kBlocks = 8192;
  constexpr std::uint64_t kWindow = 32;
  const Values positions = numbers_up_to(kBlocks * kRows);
  Values before = positions;
  for (const auto& [seed, epoch] : {std::pair{0, 0}, {0, 1}, {1, 0}, {2, 1}}) {
    CAPTURE(seed, epoch);
    const Values order = order_of(kBlocks * kRows, {Shuffle::kBlock, kRows, kWindow}, seed, epoch);
    // Blocks move as a whole, so blocks are counted.
    const double sigma = 1 / std::sqrt(kBlocks - 1.0);
    CHECK(std::abs(correlation(positions, order)) < 5 * sigma);
    CHECK(std::abs(correlation(before, order)) < 5 * sigma);
    Values blocks;
    for (std::uint64_t begin = 0; begin < order.size(); begin += kRows * kWindow) {
      std::set<std::uint64_t> held;
      for (std::uint64_t i = begin; i < begin + kRows * kWindow; ++i) held.insert(order[i] / kRows);
      blocks.insert(blocks.end(), held.begin(), held.end());
    }
    CHECK(is_bijection(blocks));
    CHECK(std::abs(deviation(by_position(blocks, kBlocks, 8), kBlocks / 64.0, 15)) < 5);
    before = order;
  }
}

TEST_CASE("a block shuffle mixes neighbours within a window", "[reader][order]") {
  constexpr std::uint64_t kRows = 64;
  constexpr std::uint64_t kWindow = 64;
  constexpr std::uint64_t kSize = kRows * kWindow;
  constexpr std::uint64_t kWindows = 24;
  const Values order = order_of(kSize * kWindows, {Shuffle::kBlock, kRows, kWindow}, 3, 1);
  // Any two of a window are neighbours with a chance of 2 / kSize. Of kRows samples, all but one
  // are followed by the next one in the same block.
  const double expected = 2.0 / kSize * (kRows - 1) * kWindow * kWindows;
  CHECK(static_cast<double>(neighbours_in(order)) < expected + 6 * std::sqrt(expected));
  // Counts of (row in its block, place in the window), over all windows.
  constexpr std::uint64_t kBuckets = 16;
  Values counts(kBuckets * kBuckets);
  for (std::uint64_t i = 0; i < order.size(); ++i) {
    const std::uint64_t place = i % kSize;
    ++counts[place * kBuckets / kSize * kBuckets + order[i] % kRows * kBuckets / kRows];
  }
  CHECK(std::abs(deviation(counts, kSize * kWindows / 256.0, 31)) < 5);
  for (std::uint64_t window = 0; window + 1 < kWindows; ++window) {
    CAPTURE(window);
    Values rows;
    Values rows_of_next;
    std::set<std::uint64_t> in_one_batch;
    for (std::uint64_t i = window * kSize; i < (window + 1) * kSize; ++i) {
      rows.push_back(order[i] % kRows);
      rows_of_next.push_back(order[i + kSize] % kRows);
      if (rows.size() <= 256) in_one_batch.insert(order[i] / kRows);
    }
    // No two consecutive windows are mixed in the same way.
    CHECK(std::abs(correlation(rows, rows_of_next)) < 5 / std::sqrt(kSize - 1.0));
    // 256 draws from 64 blocks leave out 64 * (63/64)^256, or 1.1, on average.
    CHECK(in_one_batch.size() >= 56);
  }
}

TEST_CASE("every sample is equally likely at every position", "[reader][order]") {
  for (const OrderOptions& options :
       {OrderOptions{Shuffle::kFull}, OrderOptions{Shuffle::kBlock, 8, 4},
        OrderOptions{Shuffle::kBlock, 1, 7}, OrderOptions{Shuffle::kBlock, 40, 1}}) {
    for (const std::uint64_t position : {0U, 31U, 32U, 119U}) {
      Values by_seed(120);
      Values by_epoch(120);
      for (std::uint64_t key = 0; key < 12'000; ++key) {
        ++by_seed[EpochOrder(120, options, key, 0)[position]];
        ++by_epoch[EpochOrder(120, options, 0, key)[position]];
      }
      CAPTURE(name(options.shuffle), options.block_rows, options.window_blocks, position);
      CHECK(std::abs(deviation(by_seed, 100)) < 5);
      CHECK(std::abs(deviation(by_epoch, 100)) < 5);
    }
  }
}

}  // namespace
}  // namespace precache
