// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "precache/formats/error.hpp"
#include "precache/reader/loader.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/datasets.hpp"

namespace precache {
namespace {

using test::DatasetPlan;
using test::kFormats;
using test::MadeDataset;
using test::TempFolder;

/// A dataset whose named columns are bytes of its images: `mask` is the first channel, `pair` two
/// unaligned floats. So any format has them, and what batches hold can be compared with the images.
MadeDataset make_with_columns(const TempFolder& folder, Format format, bool with_mask = true) {
  MadeDataset made = test::make_dataset(folder.path(), {.format = format});
  SplitEntry& split = made.manifest.splits.begin()->second;
  split.columns = {{"pair", ValueType::kFloat32, {2}, {}}, {"code", ValueType::kInt64, {}, {}}};
  if (with_mask) {
    split.columns.push_back({"mask", ValueType::kUint8, {8, 6}, {}});
  }
  for (ShardEntry& shard : split.shards) {
    const Column image = shard.columns->image;
    std::vector<Column>& named = shard.columns.edit().named;
    for (const NamedColumn& column : split.columns) {
      const std::uint64_t offset = column.is_mask() ? 0 : 3;
      named.push_back({image.base + offset, image.stride, std::string(name(column.type))});
    }
  }
  made.write_manifest();
  return made;
}

template <typename T>
std::vector<T> values_in(const MadeDataset& made, std::uint64_t sample, std::size_t offset,
                         std::size_t count) {
  std::vector<T> values(count);
  std::memcpy(values.data(), made.samples[sample].tensor.data() + offset, count * sizeof(T));
  return values;
}

template <typename T>
bool equal_bits(std::span<const T> a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

TEST_CASE("a dataset has its named columns", "[reader][columns]") {
  for (const Format format : kFormats) {
    CAPTURE(format);
    const TempFolder folder;
    const MadeDataset made = make_with_columns(folder, format);
    const Dataset dataset = Dataset::open(folder.path());
    REQUIRE(dataset.columns().size() == 3);
    CHECK(dataset.columns()[0].text() == "pair float32[2]");
    CHECK(dataset.columns()[2].is_mask());
    for (std::uint64_t i = 0; i < dataset.size(); ++i) {
      const Sample sample = dataset[i];
      CHECK(equal_bits<float>(sample.column<float>("pair"), values_in<float>(made, i, 3, 2)));
      CHECK(sample.column<std::int64_t>("code") == values_in<std::int64_t>(made, i, 3, 1));
      CHECK(sample.column_bytes("mask").data() == sample.bytes().data());
      CHECK(sample.column_bytes("mask").size() == 48);
    }
    const Sample sample = dataset[0];
    CHECK_THROWS_AS(sample.column<std::int32_t>("pair"), InvalidArgument);
    CHECK_THROWS_AS(sample.column_bytes("age"), InvalidArgument);
  }
}

TEST_CASE("batches have the columns that were asked for", "[reader][columns]") {
  for (const Format format : kFormats) {
    for (const bool crops : {false, true}) {
      for (const Shuffle shuffle : {Shuffle::kNone, Shuffle::kFull}) {
        CAPTURE(format, crops, shuffle);
        const TempFolder folder;
        const MadeDataset made = make_with_columns(folder, format);
        LoaderOptions options;
        options.batch_size = 5;
        options.order.shuffle = shuffle;
        options.last_batch = LastBatch::kKeep;
        options.threads = 2;
        options.columns = {"mask", "code", "pair"};
        if (crops) {
          options.transform.crop = Crop{5, 4};
          options.transform.flip = true;
          options.transform.sizes = {{1, {3, 6}}};
        }
        std::optional<Loader> loader(std::in_place, Dataset::open(folder.path()), options);
        REQUIRE(loader->columns().size() == 3);
        CHECK(loader->columns()[0].shape ==
              (crops ? std::vector<std::uint32_t>{5, 4} : std::vector<std::uint32_t>{8, 6}));
        std::vector<Batch> batches;
        for (int epoch = 0; epoch < 3; ++epoch) {
          while (auto batch = loader->next()) batches.push_back(std::move(*batch));
        }
        loader.reset();  // batches outlive it
        CHECK(batches.size() == 9);
        for (const Batch& batch : batches) {
          CHECK(batch.is_view() ==
                (!crops && shuffle == Shuffle::kNone && batch.samples()[0] != 5));
          const auto masks = batch.column<std::uint8_t>("mask");
          const auto codes = batch.column<std::int64_t>("code");
          const auto pairs = batch.column<float>("pair");
          REQUIRE(masks.size() == batch.size());
          for (std::size_t i = 0; i < batch.size(); ++i) {
            const std::uint64_t sample = batch.samples()[i];
            // The crop and the flip are those of the image.
            const auto image = batch.as<std::uint8_t>()[i];
            CHECK(std::ranges::equal(masks[i], image.first(masks[i].size())));
            CHECK(masks[i].size() * 3 == image.size());
            CHECK(equal_bits<std::int64_t>(codes[i], values_in<std::int64_t>(made, sample, 3, 1)));
            CHECK(equal_bits<float>(pairs[i], values_in<float>(made, sample, 3, 2)));
          }
          CHECK_THROWS_AS(batch.column<float>("mask"), InvalidArgument);
          CHECK_THROWS_AS(batch.column<float>("age"), InvalidArgument);
        }
      }
    }
  }
}

TEST_CASE("columns that a loader cannot give are refused", "[reader][columns]") {
  const TempFolder folder;
  MadeDataset made = make_with_columns(folder, Format::kTar);
  const auto message = [&](const std::vector<std::string>& columns, bool crops) {
    LoaderOptions options;
    options.columns = columns;
    options.batch_size = 2;
    if (crops) options.transform.crop = Crop{5, 4};
    return test::message_of<InvalidArgument>(
        [&] { Loader(Dataset::open(folder.path()), options); });
  };
  CHECK(message({"age"}, false).find("`columns` has 'age'") != std::string::npos);
  CHECK(message({"pair", "pair"}, false).find("twice") != std::string::npos);
  made.manifest.splits.begin()->second.columns.back().shape = {6, 8};
  made.write_manifest();
  CHECK(message({"mask"}, true).find("a mask of 6x8") != std::string::npos);
  LoaderOptions options;
  options.columns = {"mask"};  // without a crop it may have any size
  options.batch_size = 2;
  Loader loader(Dataset::open(folder.path()), options);
  CHECK(loader.next()->column<std::uint8_t>("mask")[0].size() == 48);
}

TEST_CASE("a dataset of shards that differ in their columns has none", "[reader][columns]") {
  const TempFolder a;
  const TempFolder b;
  const MadeDataset with = make_with_columns(a, Format::kTar);
  const MadeDataset without = make_with_columns(b, Format::kTar, false);
  const Dataset both = Dataset::open({with.shards[0], without.shards[0]});
  CHECK(both.columns().empty());
  const Sample sample = both[0];
  CHECK_THROWS_AS(sample.column_bytes("pair"), InvalidArgument);
  const Dataset alike = Dataset::open({with.shards[0], with.shards[1]});
  CHECK(alike.columns().size() == 3);
}

TEST_CASE("a resumed loader continues with the columns of the same samples", "[reader][columns]") {
  const TempFolder folder;
  (void)make_with_columns(folder, Format::kTfrecord);
  LoaderOptions options;
  options.batch_size = 2;
  options.order.shuffle = Shuffle::kFull;
  options.columns = {"code"};
  options.transform.flip = true;
  const Dataset dataset = Dataset::open(folder.path());
  Loader loader(dataset, options);
  (void)loader.next();
  const OrderState state = loader.state();
  options.world_size = 2;
  options.batch_size = 1;
  std::vector<Loader> ranks;
  for (options.rank = 0; options.rank < 2; ++options.rank) {
    ranks.emplace_back(dataset, options);
    ranks.back().resume(state);
  }
  while (const auto batch = loader.next()) {
    for (std::size_t rank = 0; rank < 2; ++rank) {
      const auto part = ranks[rank].next();
      REQUIRE(part.has_value());
      CHECK(part->column<std::int64_t>("code")[0][0] ==
            batch->column<std::int64_t>("code")[rank][0]);
    }
  }
}

}  // namespace
}  // namespace precache
