// SPDX-License-Identifier: Apache-2.0
#include "precache/reader/loader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include "precache/formats/error.hpp"
#include "reader/loader/epoch_order.hpp"
#include "reader/loader/pixel_pass.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/datasets.hpp"

namespace precache {
namespace {

using test::Bytes;
using test::DatasetPlan;
using test::kFormats;
using test::MadeDataset;
using test::make_dataset;
using test::same_bytes;
using test::spec_of;
using test::TempFolder;
using Indices = std::vector<std::uint64_t>;

constexpr Shuffle kShuffles[] = {Shuffle::kNone, Shuffle::kBlock, Shuffle::kFull};
constexpr LastBatch kLastBatches[] = {LastBatch::kDrop, LastBatch::kPad, LastBatch::kKeep,
                                      LastBatch::kEven};

/// The batches of one epoch by the definition of the documents, independent of the code.
std::vector<Indices> expected_batches(std::uint64_t samples, const LoaderOptions& options,
                                      std::uint64_t epoch, std::uint64_t position = 0) {
  const EpochOrder order(samples, options.order, options.seed, epoch);
  std::vector<Indices> batches;
  const std::uint64_t step = options.batch_size * options.world_size;
  for (std::uint64_t p = position; p < samples; p += step) {
    if (options.last_batch == LastBatch::kDrop && p + step > samples) break;
    std::uint64_t end = p + step;  // of the positions of all ranks at this step
    if (options.last_batch == LastBatch::kKeep) end = std::min(end, samples);
    if (options.last_batch == LastBatch::kEven && end > samples) {
      end = samples;
      while ((end - p) % options.world_size != 0) ++end;
    }
    Indices batch;
    for (std::uint64_t rank = 0, at = p; rank <= options.rank; ++rank) {
      const std::uint64_t ranks_left = options.world_size - rank;
      const std::uint64_t count = (end - at + ranks_left - 1) / ranks_left;
      batch.clear();
      for (std::uint64_t i = 0; i < count; ++i) batch.push_back(order[(at + i) % samples]);
      at += count;
    }
    if (!batch.empty()) batches.push_back(batch);
  }
  return batches;
}

/// True if a batch has these samples, transformed by `pass`.
void check_batch(const Batch& batch, const Indices& samples, const MadeDataset& made,
                 const PixelPass& pass, std::uint64_t seed, std::uint64_t epoch) {
  REQUIRE(batch.size() == samples.size());
  CHECK(std::ranges::equal(batch.samples(), samples));
  CHECK(batch.spec() == pass.result());
  REQUIRE(batch.labels().size() == samples.size());
  Bytes expected(pass.result().size_bytes());
  std::size_t wrong_rows = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const test::Sample& sample = made.samples[samples[i]];
    pass.run(sample.tensor, pass.choose(seed, epoch, samples[i]), expected.data(), false);
    wrong_rows += same_bytes(batch[i], expected) ? 0 : 1;
    wrong_rows += batch.labels()[i] == sample.name.label ? 0 : 1;
    wrong_rows += batch[i].data() == batch.data() + i * batch.stride_bytes() ? 0 : 1;
  }
  CHECK(wrong_rows == 0);
}

void check_epoch(Loader& loader, const MadeDataset& made, const LoaderOptions& options,
                 std::uint64_t epoch) {
  const PixelPass pass(made.manifest.spec, options.transform);
  const auto expected = expected_batches(made.samples.size(), options, epoch);
  CHECK(loader.epoch() == epoch);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(loader.batches_left() == expected.size() - i);
    const auto batch = loader.next();
    REQUIRE(batch);
    check_batch(*batch, expected[i], made, pass, options.seed, epoch);
  }
  CHECK(loader.batches_left() == 0);
  CHECK_FALSE(loader.next());
}

std::string text(const LoaderOptions& options) {
  return fmt::format("{} {} threads {} prefetch {} batch {} rank {}/{}",
                     name(options.order.shuffle), name(options.last_batch), options.threads,
                     options.prefetch, options.batch_size, options.rank, options.world_size);
}

/// Calls with all combinations of the options that a test varies.
std::vector<LoaderOptions> all_options(std::initializer_list<std::uint64_t> batch_sizes) {
  std::vector<LoaderOptions> all;
  for (const Shuffle shuffle : kShuffles) {
    for (const LastBatch last_batch : kLastBatches) {
      for (const unsigned threads : {1U, 2U, 5U}) {
        for (const std::size_t prefetch : {1U, 3U}) {
          for (const std::uint64_t batch_size : batch_sizes) {
            LoaderOptions options;
            options.order = {shuffle, 4, 2};
            options.last_batch = last_batch;
            options.threads = threads;
            options.prefetch = prefetch;
            options.batch_size = batch_size;
            options.seed = 7;
            all.push_back(options);
          }
        }
      }
    }
  }
  return all;
}

TEST_CASE("batches follow the order and the dataset", "[reader][loader][concurrency]") {
  const TempFolder folder;
  for (const Format format : kFormats) {
    const MadeDataset made = make_dataset(folder / std::string(name(format)),
                                          {.format = format, .shards = {9, 0, 1, 13, 6}});
    const Dataset dataset = Dataset::open(made.folder);
    for (const LoaderOptions& options : all_options({1, 4, 7, 29, 64})) {
      CAPTURE(name(format), text(options));
      Loader loader(dataset, options);
      for (std::uint64_t epoch = 0; epoch < 2; ++epoch) check_epoch(loader, made, options, epoch);
    }
  }
}

TEST_CASE("each rank gets its slice of every step", "[reader][loader][concurrency]") {
  const TempFolder folder;
  const MadeDataset made = make_dataset(folder.path(), {.shards = {9, 14, 6}});
  const Dataset dataset = Dataset::open(made.folder);
  for (LoaderOptions options : all_options({3, 5})) {
    if (options.threads == 5) continue;
    options.world_size = 4;
    for (options.rank = 0; options.rank < 4; ++options.rank) {
      CAPTURE(text(options));
      Loader loader(dataset, options);
      check_epoch(loader, made, options, 0);
      check_epoch(loader, made, options, 1);
    }
  }
}

std::vector<BatchTransform> some_transforms(DType stored) {
  std::vector<BatchTransform> all;
  for (const Layout layout : {Layout::kChw, Layout::kHwc}) {
    for (const bool flip : {false, true}) {
      for (const DType dtype :
           {DType::kUint8, DType::kFloat16, DType::kBfloat16, DType::kFloat32}) {
        if (stored != DType::kUint8 && dtype == DType::kUint8) continue;
        BatchTransform transform;
        transform.layout = layout;
        transform.flip = flip;
        transform.dtype = dtype;
        all.push_back(transform);
        transform.crop = Crop{5, 4, flip ? CropPosition::kRandom : CropPosition::kCenter};
        all.push_back(transform);
        if (stored != DType::kUint8 || dtype == DType::kUint8) continue;
        transform.normalize = Normalization{{0.5F, 0.4F, 0.3F}, {0.2F, 0.25F, 0.3F}};
        all.push_back(transform);
      }
    }
  }
  return all;
}

TEST_CASE("batches are transformed like single samples", "[reader][loader]") {
  const TempFolder folder;
  for (const DType dtype : {DType::kUint8, DType::kFloat16, DType::kFloat32}) {
    for (const Layout layout : {Layout::kChw, Layout::kHwc}) {
      const auto path = folder / fmt::format("{}-{}", name(dtype), name(layout));
      const MadeDataset made = make_dataset(
          path, {.format = *std::rbegin(kFormats), .spec = spec_of(9, 7, 3, dtype, layout)});
      const Dataset dataset = Dataset::open(path);
      for (const BatchTransform& transform : some_transforms(dtype)) {
        LoaderOptions options;
        options.batch_size = 5;
        options.last_batch = LastBatch::kPad;
        options.order.shuffle = Shuffle::kFull;
        options.seed = 3;
        options.threads = 2;
        options.transform = transform;
        CAPTURE(path.filename().string(), transform.result(made.manifest.spec).text());
        Loader loader(dataset, options);
        CHECK(loader.spec() == transform.result(made.manifest.spec));
        check_epoch(loader, made, options, 0);
        check_epoch(loader, made, options, 1);
      }
    }
  }
}

TEST_CASE("large batches are filled by many threads at once", "[reader][loader][concurrency]") {
  // 192 KiB each, so that a batch has many chunks and bypasses the caches.
  const TempFolder folder;
  const MadeDataset made =
      make_dataset(folder.path(), {.spec = spec_of(256, 256, 3), .shards = {40, 50}});
  for (const bool transformed : {false, true}) {
    LoaderOptions options;
    options.batch_size = 45;
    options.order.shuffle = Shuffle::kFull;
    options.threads = 5;
    options.prefetch = 2;
    if (transformed) {
      options.transform.crop = Crop{224, 224};
      options.transform.flip = true;
      options.transform.dtype = DType::kFloat16;
    }
    Loader loader(Dataset::open(made.folder), options);
    check_epoch(loader, made, options, 0);
    check_epoch(loader, made, options, 1);
  }
}

TEST_CASE("sequential batches inside a shard are views, others are gathered", "[reader][loader]") {
  const TempFolder folder;
  for (const Format format : kFormats) {
    CAPTURE(name(format));
    MadeDataset made =
        make_dataset(folder / std::string(name(format)), {.format = format, .shards = {8, 6, 10}});
    LoaderOptions options;
    options.batch_size = 4;
    options.threads = 2;
    Loader loader(Dataset::open(made.folder), options);
    // 0-3 4-7 | 8-11 12-13 / 14-15 | 16-19 20-23
    const std::vector<std::pair<bool, std::size_t>> expected{{true, 0},  {true, 0}, {true, 1},
                                                             {false, 0}, {true, 2}, {true, 2}};
    std::vector<Batch> held;
    for (const auto& [is_view, shard] : expected) {
      auto batch = loader.next();
      REQUIRE(batch);
      CHECK(batch->is_view() == is_view);
      const std::string mapping = test::mapping_of(batch->data());
      CAPTURE(mapping);
      if (is_view) {
        CHECK_THAT(mapping, test::contains(made.shards[shard].filename().string()));
        CHECK_THAT(mapping, test::contains("r--p"));
        CHECK(batch->stride_bytes() == made.entries()[shard].columns->image.stride);
      } else {
        CHECK(mapping.find(made.folder.string()) == std::string::npos);
        CHECK(batch->stride_bytes() == made.manifest.spec.size_bytes());
      }
      held.push_back(std::move(*batch));
    }
    CHECK(loader.stats().views == 5);
    CHECK(loader.stats().batches == 6);
    options.order.shuffle = Shuffle::kFull;
    Loader shuffled(Dataset::open(made.folder), options);
    for (auto batch = shuffled.next(); batch; batch = shuffled.next())
      CHECK_FALSE(batch->is_view());
    options.order.shuffle = Shuffle::kNone;
    options.transform.flip = true;
    Loader flipped(Dataset::open(made.folder), options);
    for (auto batch = flipped.next(); batch; batch = flipped.next()) CHECK_FALSE(batch->is_view());
  }
}

TEST_CASE("batches that were released are views again in later epochs", "[reader][loader]") {
  const TempFolder folder;
  const MadeDataset made = make_dataset(folder.path(), {.shards = {12, 12}});
  for (const std::uint64_t batch_size : {1, 2}) {  // epochs of more batches than are prefetched
    LoaderOptions options;
    options.batch_size = batch_size;
    options.threads = 2;
    Loader loader(Dataset::open(made.folder), options);
    for (std::uint64_t epoch = 0; epoch < 20; ++epoch) check_epoch(loader, made, options, epoch);
    CAPTURE(batch_size);
    CHECK(loader.stats().views == loader.stats().batches);
  }
}

TEST_CASE("stats count what was done", "[reader][loader]") {
  const TempFolder folder;
  const MadeDataset made = make_dataset(folder.path(), {.shards = {30}});
  LoaderOptions options;
  options.batch_size = 5;
  options.order.shuffle = Shuffle::kFull;
  options.threads = 1;
  options.prefetch = 2;
  Loader loader(Dataset::open(made.folder), options);
  CHECK(loader.stats().batches == 0);
  CHECK(loader.stats().views == 0);
  while (auto batch = loader.next()) {
  }
  const LoaderStats stats = loader.stats();
  CHECK(stats.batches == 6);
  const std::uint64_t epoch_bytes = 30 * made.manifest.spec.size_bytes();
  CHECK(stats.bytes_touched >= epoch_bytes);
  CHECK(stats.bytes_touched <= epoch_bytes + 2 * epoch_bytes / 6);
  CHECK(stats.batches_ahead >= 0);
  CHECK(stats.batches_ahead <= 2);
  LoaderStats waiting;
  waiting.workers_waited = std::chrono::seconds(1);
  CHECK_THAT(waiting.bottleneck(), test::contains("the workers wait"));
  waiting.consumer_waited = std::chrono::seconds(2);
  CHECK_THAT(waiting.bottleneck(), test::contains("the consumer waits"));
}

TEST_CASE("a consumer that waits in steps gets the same batches, and is counted once for each",
          "[reader][loader][concurrency]") {
  const TempFolder folder;
  const MadeDataset made = make_dataset(folder.path(), {.shards = {30}});
  LoaderOptions options;
  options.batch_size = 5;
  options.order.shuffle = Shuffle::kFull;
  options.threads = 1;
  options.prefetch = 1;
  Loader loader(Dataset::open(made.folder), options);
  Indices seen;
  for (int batches = 0; batches <= 6; ++batches) {
    while (!loader.wait_for(std::chrono::microseconds(1))) {
    }
    CHECK(loader.wait_for(std::chrono::nanoseconds(0)));
    const auto batch = loader.next();
    REQUIRE(batch.has_value() == (batches < 6));
    if (batch) std::ranges::copy(batch->samples(), std::back_inserter(seen));
  }
  CHECK(loader.stats().batches == 6);
  CHECK(loader.stats().batches_ahead <= 1);
  std::ranges::sort(seen);
  Indices all(30);
  std::iota(all.begin(), all.end(), std::uint64_t{0});
  CHECK(seen == all);
}

TEST_CASE("a crop that cannot move is a warning", "[reader][loader]") {
  const TempFolder folder;
  const Dataset dataset = Dataset::open(make_dataset(folder.path(), {}).folder);
  const auto warnings = [&](const std::optional<Crop>& crop) {
    LoaderOptions options;
    options.transform.crop = crop;
    options.threads = 1;
    return Loader(dataset, options).warnings();
  };
  REQUIRE(warnings(Crop{8, 6}).size() == 1);
  CHECK_THAT(warnings(Crop{8, 6})[0], test::contains("8x6"));
  CHECK(warnings(Crop{8, 5}).empty());
  CHECK(warnings(Crop{7, 6}).empty());
  CHECK(warnings(Crop{8, 6, CropPosition::kCenter}).empty());
  CHECK(warnings(std::nullopt).empty());
}

TEST_CASE("invalid options are refused", "[reader][loader]") {
  const TempFolder folder;
  const Dataset dataset = Dataset::open(make_dataset(folder.path(), {}).folder);
  const auto refused = [&](const auto& change) {
    LoaderOptions options;
    options.threads = 1;
    change(options);
    CHECK_THROWS_AS(Loader(dataset, options), InvalidArgument);
  };
  refused([](LoaderOptions& options) { options.batch_size = 0; });
  refused([](LoaderOptions& options) { options.batch_size = UINT64_MAX; });
  for (const std::uint64_t batch_size : {(1U << 20) + 1, UINT32_MAX}) {
    refused([&](LoaderOptions& options) {
      options.batch_size = batch_size;
      options.last_batch = LastBatch::kPad;
    });
  }
  refused([](LoaderOptions& options) { options.prefetch = 0; });
  refused([](LoaderOptions& options) { options.world_size = 0; });
  refused([](LoaderOptions& options) { options.rank = 1; });
  refused([](LoaderOptions& options) { options.world_size = UINT64_MAX; });
  refused([](LoaderOptions& options) { options.order = {Shuffle::kBlock, 0, 1}; });
  refused([](LoaderOptions& options) { options.order = {Shuffle::kBlock, 1, 0}; });
  refused([](LoaderOptions& options) { options.transform.crop = Crop{9, 6}; });
  refused([](LoaderOptions& options) { options.transform.crop = Crop{0, 6}; });
  refused([](LoaderOptions& options) {
    options.transform.dtype = DType::kUint8;
    options.transform.normalize = Normalization{};
  });
}

}  // namespace
}  // namespace precache
