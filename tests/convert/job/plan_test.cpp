// SPDX-License-Identifier: Apache-2.0
#include "convert/job/plan.hpp"

#include <algorithm>
#include <vector>

#include "tests/support/catch.hpp"

namespace precache {
namespace {

std::vector<std::uint64_t> samples_of(const Plan& plan) {
  std::vector<std::uint64_t> samples;
  for (std::uint64_t shard = 0; shard < plan.shards(); ++shard) {
    for (std::uint64_t slot = 0; slot < plan.shard_records(shard); ++slot) {
      samples.push_back(plan.sample(shard, slot));
    }
  }
  return samples;
}

TEST_CASE("a plan cuts the records into shards that differ by at most one", "[convert][plan]") {
  for (std::uint64_t samples = 1; samples <= 60; ++samples) {
    for (std::uint64_t shards = 1; shards <= samples; ++shards) {
      const Plan plan(samples, shards, std::nullopt);
      CAPTURE(samples, shards);
      REQUIRE(plan.records() == samples);
      REQUIRE(plan.shards() == shards);
      REQUIRE(plan.shard_begin(0) == 0);
      REQUIRE(plan.shard_begin(shards) == samples);
      for (std::uint64_t shard = 0; shard < shards; ++shard) {
        // The first n mod S shards have one more.
        REQUIRE(plan.shard_records(shard) == samples / shards + (shard < samples % shards ? 1 : 0));
        REQUIRE(plan.shard_begin(shard) + plan.shard_records(shard) == plan.shard_begin(shard + 1));
      }
    }
  }
}

TEST_CASE("a plan has every sample exactly once", "[convert][plan]") {
  for (const std::uint64_t samples : {1U, 2U, 3U, 10U, 100U, 1000U, 4097U}) {
    for (const std::uint64_t shards : {std::uint64_t{1}, (samples + 2) / 3, samples}) {
      for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1}, UINT64_MAX}) {
        auto found = samples_of(Plan(samples, shards, seed));
        std::sort(found.begin(), found.end());
        std::vector<std::uint64_t> expected(samples);
        for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = i;
        CAPTURE(samples, shards, seed);
        REQUIRE(found == expected);
      }
    }
  }
}

TEST_CASE("a plan without a seed keeps the order of the listing", "[convert][plan]") {
  const auto samples = samples_of(Plan(100, 7, std::nullopt));
  CHECK(std::is_sorted(samples.begin(), samples.end()));
}

TEST_CASE("a plan's order depends on the seed and not on the shards", "[convert][plan]") {
  const auto samples = samples_of(Plan(100, 7, 5));
  CHECK(samples == samples_of(Plan(100, 1, 5)));
  CHECK(samples == samples_of(Plan(100, 100, 5)));
  CHECK(samples != samples_of(Plan(100, 7, 6)));
  CHECK_FALSE(std::is_sorted(samples.begin(), samples.end()));
  const Permutation permutation(100, 5);
  for (std::uint64_t i = 0; i < 100; ++i) CHECK(samples[i] == permutation(i));
}

TEST_CASE("a plan of very many records does not overflow", "[convert][plan]") {
  const std::uint64_t samples = (std::uint64_t{1} << 62) + 12345;
  const Plan plan(samples, 1'000'003, 1);
  CHECK(plan.shard_begin(1'000'003) == samples);
  CHECK(plan.sample(1'000'002, plan.shard_records(1'000'002) - 1) < samples);
}

TEST_CASE("shards are as many as hold about the wanted bytes", "[convert][plan]") {
  CHECK(shards_for_size(100, 10, 1000) == 1);
  CHECK(shards_for_size(101, 10, 1000) == 2);
  CHECK(shards_for_size(100, 10, 999) == 2);
  CHECK(shards_for_size(100, 10, 10) == 100);
  CHECK(shards_for_size(100, 10, 1) == 100);  // never less than a record
  CHECK(shards_for_size(100, 10, UINT64_MAX) == 1);
  CHECK(shards_for_size(1, 1'000'000, 1) == 1);
  CHECK(shards_for_size(0, 10, 100) == 1);
  for (std::uint64_t records = 1; records < 300; records += 7) {
    for (std::uint64_t bytes = 1; bytes < 400; bytes += 13) {
      const std::uint64_t shards = shards_for_size(records, 10, bytes);
      CAPTURE(records, bytes, shards);
      REQUIRE(shards <= records);
      const std::uint64_t most = (records + shards - 1) / shards;
      REQUIRE(most <= std::max<std::uint64_t>(1, bytes / 10));
    }
  }
}

TEST_CASE("a plan takes shards of any sizes, empty ones too", "[convert][plan]") {
  const std::vector<std::uint64_t> sizes{0, 3, 0, 5, 1, 0};
  for (const bool shuffled : {false, true}) {
    const Plan plan(sizes, shuffled ? std::optional<std::uint64_t>(7) : std::nullopt);
    CHECK(plan.records() == 9);
    REQUIRE(plan.shards() == sizes.size());
    for (std::size_t i = 0; i < sizes.size(); ++i) CHECK(plan.shard_records(i) == sizes[i]);
    auto samples = samples_of(plan);
    CHECK(std::ranges::is_sorted(samples) != shuffled);
    std::ranges::sort(samples);
    for (std::uint64_t i = 0; i < samples.size(); ++i) CHECK(samples[i] == i);
  }
  CHECK(Plan(std::vector<std::uint64_t>{}, std::nullopt).records() == 0);
}

}  // namespace
}  // namespace precache
