// SPDX-License-Identifier: Apache-2.0
// Batches may be made writable. Small records put the edges of several batches on one page.
#include <algorithm>
#include <cstring>
#include <deque>

#include "precache/reader/loader.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/datasets.hpp"
#include "tests/support/threads.hpp"

namespace precache {
namespace {

using test::below;
using test::DatasetPlan;
using test::kFormats;
using test::MadeDataset;
using test::make_dataset;
using test::Random;
using test::same_bytes;
using test::spec_of;
using test::TempFolder;

bool is_right(const Batch& batch, const MadeDataset& made) {
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const test::Sample& sample = made.samples[batch.samples()[i]];
    if (!same_bytes(batch[i], sample.tensor) || batch.labels()[i] != sample.name.label)
      return false;
  }
  return true;
}

/// All bytes from the first row to the last, including those between rows.
std::span<const std::byte> memory_of(const Batch& batch) {
  return {batch.data(), (batch.size() - 1) * batch.stride_bytes() + batch.spec().size_bytes()};
}

void fill(Batch& batch, std::byte value) {
  std::memset(batch.make_writable(), std::to_integer<int>(value), memory_of(batch).size());
}

bool is_filled(const Batch& batch, std::byte value) {
  const auto memory = memory_of(batch);
  // Equal to itself moved by one; a loop would take sanitizers minutes.
  return memory[0] == value && same_bytes(memory.first(memory.size() - 1), memory.subspan(1));
}

bool reads_right(const Dataset& dataset, const MadeDataset& made, std::uint64_t i) {
  const Sample sample = dataset[i];
  const Rows rows = dataset.rows(i, 1);
  return same_bytes(sample.bytes(), made.samples[i].tensor) &&
         same_bytes(rows[0], made.samples[i].tensor) &&
         sample.label() == made.samples[i].name.label && sample.key() == made.samples[i].name.key;
}

struct Held {
  Batch batch;
  std::byte value;
};

/// Reads epochs in which every batch is overwritten and some batches are held, each with its own
/// writes.
struct Abuse {
  std::uint64_t batch_size;
  std::size_t most_held;
  std::uint64_t seed;
  bool writable;  // made writable ahead, by the loader's threads
  int epochs = 3;
};

void abuse(const Dataset& dataset, const MadeDataset& made, const Abuse& plan) {
  Random random(plan.seed);
  LoaderOptions options;
  options.batch_size = plan.batch_size;
  options.last_batch = LastBatch::kKeep;
  options.threads = 2;
  options.prefetch = 2;
  options.writable = plan.writable;
  Loader loader(dataset, options);
  std::deque<Held> held;
  std::size_t wrong_batches = 0;
  std::size_t lost_writes = 0;
  std::size_t wrong_reads = 0;
  for (int epoch = 0; epoch < plan.epochs; ++epoch) {
    while (auto batch = loader.next()) {
      wrong_batches += is_right(*batch, made) ? 0 : 1;
      const auto value = static_cast<std::byte>(random());
      fill(*batch, value);
      held.push_back({std::move(*batch), value});
      while (held.size() > plan.most_held) {
        const auto at = static_cast<std::ptrdiff_t>(below(random, held.size()));
        lost_writes += is_filled(held[static_cast<std::size_t>(at)].batch,
                                 held[static_cast<std::size_t>(at)].value)
                           ? 0
                           : 1;
        held.erase(held.begin() + at);
      }
      for (const auto& [other, other_value] : held) {
        lost_writes += is_filled(other, other_value) ? 0 : 1;
      }
      wrong_reads += reads_right(dataset, made, below(random, made.samples.size())) ? 0 : 1;
    }
  }
  CHECK(wrong_batches == 0);
  CHECK(lost_writes == 0);
  CHECK(wrong_reads == 0);
}

TEST_CASE("only the holder of a batch sees its writes", "[reader][loader][concurrency]") {
  const TempFolder folder;
  for (const Format format : kFormats) {
    for (const std::uint32_t side : {4U, 20U, 70U}) {  // 48 bytes, 1.2 KB, 14.7 KB
      const auto path = folder / fmt::format("{}-{}", name(format), side);
      const MadeDataset made = make_dataset(
          path, {.format = format, .spec = spec_of(side, side, 3), .shards = {37, 11, 40}});
      const auto files = test::contents_of(path);
      for (const std::uint64_t batch_size : {1, 2, 3, 8}) {
        for (const std::size_t most_held : {0, 1, 2, 5, 12}) {
          CAPTURE(name(format), side, batch_size, most_held);
          const Dataset dataset = Dataset::open(path);
          for (const bool writable : {false, true}) {
            abuse(dataset, made, {batch_size, most_held, batch_size + most_held, writable});
          }
        }
      }
      CHECK(test::contents_of(path) == files);
    }
  }
}

/// Writes to some bytes of a batch.
void scribble(Batch& batch, Random& random) {
  const std::span<std::byte> memory(batch.make_writable(), memory_of(batch).size());
  for (std::uint64_t i = below(random, 40); i > 0; --i) {
    const std::size_t first = below(random, memory.size());
    const std::size_t size = std::min<std::size_t>(below(random, 20'000), memory.size() - first);
    std::ranges::fill(memory.subspan(first, size), std::byte{0x5a});
  }
}

TEST_CASE("writes to a batch are gone in the next epoch", "[reader][loader]") {
  const TempFolder folder;
  for (const std::uint32_t side : {70U, 256U}) {
    const MadeDataset made =
        make_dataset(folder.path(), {.spec = spec_of(side, side, 3), .shards = {64, 96}});
    LoaderOptions options;
    options.batch_size = side == 70 ? 8 : 16;
    options.threads = 2;
    options.prefetch = 1;
    Loader loader(Dataset::open(made.folder), options);
    Random random(side);
    std::size_t wrong = 0;
    for (int epoch = 0; epoch < 5; ++epoch) {
      for (auto batch = loader.next(); batch; batch = loader.next()) {
        wrong += is_right(*batch, made) ? 0 : 1;
        scribble(*batch, random);
      }
    }
    CAPTURE(side);
    CHECK(wrong == 0);
    CHECK(loader.stats().views == loader.stats().batches);
  }
}

TEST_CASE("loaders of one dataset do not see each other's writes",
          "[reader][loader][concurrency]") {
  const TempFolder folder;
  const MadeDataset made =
      make_dataset(folder.path(), {.spec = spec_of(20, 20, 3), .shards = {60, 50}});
  const Dataset dataset = Dataset::open(made.folder);
  for (int round = 0; round < 5; ++round) {
    std::vector<std::size_t> wrong(3);
    test::on_threads(3, [&](std::size_t thread) {
      LoaderOptions options;
      options.batch_size = 2 + thread;
      options.last_batch = LastBatch::kKeep;
      options.threads = 1;
      options.writable = thread == 0;
      Loader loader(dataset, options);
      std::deque<Held> held;
      for (int epoch = 0; epoch < 3; ++epoch) {
        while (auto batch = loader.next()) {
          wrong[thread] += is_right(*batch, made) ? 0 : 1;
          const auto value = static_cast<std::byte>(thread * 50 + held.size());
          fill(*batch, value);
          held.push_back({std::move(*batch), value});
          if (held.size() > thread) {
            wrong[thread] += is_filled(held.front().batch, held.front().value) ? 0 : 1;
            held.pop_front();
          }
        }
      }
    });
    CHECK(wrong == std::vector<std::size_t>(3));
  }
}

#ifdef PRECACHE_WITH_HDF5  // its records are close to each other
TEST_CASE("a batch may be dropped while its neighbours on the same pages stay",
          "[reader][loader]") {
  // Three batches on the same pages; the one in the middle comes and goes.
  const TempFolder folder;
  const MadeDataset made = make_dataset(
      folder.path(), {.format = Format::kHdf5, .spec = spec_of(8, 8, 3), .shards = {12}});
  const Dataset dataset = Dataset::open(made.folder);
  LoaderOptions options;
  options.batch_size = 4;
  options.threads = 1;
  options.prefetch = 1;
  Loader loader(dataset, options);
  Batch first = *loader.next();
  std::optional<Batch> middle = loader.next();
  Batch last = *loader.next();
  REQUIRE(first.is_view());
  REQUIRE(middle->is_view());
  REQUIRE(last.is_view());
  fill(first, std::byte{1});
  fill(*middle, std::byte{2});
  fill(last, std::byte{3});
  middle.reset();
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (auto batch = loader.next(); batch; batch = loader.next()) {
      CHECK(is_right(*batch, made));
      fill(*batch, std::byte{9});
    }
    CHECK(is_filled(first, std::byte{1}));
    CHECK(is_filled(last, std::byte{3}));
  }
}
#endif

TEST_CASE("writes to a batch are gone after its loader", "[reader][loader]") {
  const TempFolder folder;
  const MadeDataset made = make_dataset(folder.path(), {.spec = spec_of(20, 20, 3)});
  const Dataset dataset = Dataset::open(made.folder);
  LoaderOptions options;
  options.batch_size = 2;
  options.threads = 1;
  options.last_batch = LastBatch::kKeep;
  for (int round = 0; round < 4; ++round) {
    std::optional<Batch> kept;
    {
      Loader loader(dataset, options);
      for (auto batch = loader.next(); batch; batch = loader.next()) {
        CHECK(is_right(*batch, made));
        fill(*batch, std::byte{7});
        if (!kept) kept = std::move(batch);
      }
    }
    CHECK(is_filled(*kept, std::byte{7}));
  }
}

}  // namespace
}  // namespace precache
