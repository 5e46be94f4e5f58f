// SPDX-License-Identifier: Apache-2.0
#include "precache/reader/dataset.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "precache/formats/error.hpp"
#include "precache/reader/loader.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/datasets.hpp"

namespace precache {
namespace {

using test::contains;
using test::kFormats;
using test::MadeDataset;
using test::make_dataset;
using test::message_of;
using test::same_bytes;
using test::spec_of;
using test::TempFolder;
using Path = std::filesystem::path;

/// True if a dataset has exactly these samples.
void check_samples(const Dataset& dataset, std::span<const test::Sample> expected) {
  REQUIRE(dataset.size() == expected.size());
  for (std::uint64_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    const Sample sample = dataset[i];
    CHECK(same_bytes(sample.bytes(), expected[i].tensor));
    CHECK(sample.label() == expected[i].name.label);
    CHECK(sample.key() == expected[i].name.key);
    CHECK_NOTHROW(sample.lease().check());
  }
  CHECK_THROWS_AS(dataset[expected.size()], InvalidArgument);
  CHECK_THROWS_AS(dataset[UINT64_MAX], InvalidArgument);
}

/// The same, and the facts of the manifest.
void check_whole(const Dataset& dataset, const MadeDataset& made) {
  check_samples(dataset, made.samples);
  CHECK(dataset.has_spec());
  CHECK(dataset.spec() == made.manifest.spec);
  CHECK(dataset.classes() == made.manifest.classes);
  CHECK(dataset.recipe() == made.manifest.recipe);
  CHECK(dataset.shard_count() == made.shards.size());
}

TEST_CASE("a dataset has the recipe that all of its shards have", "[reader][dataset]") {
  const TempFolder folder;
  MadeDataset made = make_dataset(folder / "one", {});
  const StoredRecipe recipe = StoredRecipe::parse(R"({"size": [8, 6], "fit": "stretch"})");
  made.manifest.recipe = recipe;
  made.write_manifest();
  CHECK(Dataset::open(folder / "one").recipe() == recipe);
  CHECK(Dataset::open(made.shards[1]).recipe() == recipe);
  std::filesystem::remove(folder / "one" / kManifestName);
  CHECK(Dataset::open(folder / "one").recipe().is_empty());
}

TEST_CASE("every sample is found in every format", "[reader][dataset]") {
  const TempFolder folder;
  for (const Format format : kFormats) {
    for (const DType dtype : {DType::kUint8, DType::kFloat16, DType::kBfloat16, DType::kFloat32}) {
      for (const Layout layout : {Layout::kChw, Layout::kHwc}) {
        CAPTURE(name(format), name(dtype), name(layout));
        const auto path = folder / fmt::format("{}{}{}", name(format), name(dtype), name(layout));
        const MadeDataset made = make_dataset(
            path,
            {.format = format, .spec = spec_of(7, 5, 3, dtype, layout), .shards = {0, 6, 1, 0, 9}});
        check_whole(Dataset::open(path), made);
        check_whole(Dataset::open(path / kManifestName), made);
      }
    }
  }
}

TEST_CASE("shards are opened one by one, by list and by pattern", "[reader][dataset]") {
  const TempFolder folder;
  const MadeDataset made = make_dataset(folder.path(), {});
  const auto all = std::span(made.samples);
  const auto open = [&](const std::string& pattern) { return Dataset::open(folder / pattern); };
  check_samples(open("train-000000.tar"), all.first(5));
  check_samples(open("train-000001.tar"), all.subspan(5, 3));
  check_whole(open("*.tar"), made);
  check_whole(open("train-00000?.tar"), made);
  check_whole(open("train-{000000..000002}.tar"), made);
  check_whole(open("train-@000002.tar"), made);
  check_whole(open("train-{000000,000001,000002}.tar"), made);
  check_samples(open("train-00000[12].tar"), all.subspan(5));
  check_samples(open("train-{000001..000002}.tar"), all.subspan(5));
  std::vector<test::Sample> twice(all.begin() + 5, all.begin() + 8);
  twice.insert(twice.end(), all.begin() + 5, all.begin() + 8);
  check_samples(open("train-000001.{tar,tar}"), twice);
  std::vector<test::Sample> swapped(all.begin() + 8, all.end());
  swapped.insert(swapped.end(), all.begin(), all.begin() + 5);
  check_samples(Dataset::open(std::vector<Path>{made.shards[2], made.shards[0]}), swapped);
  for (const char* pattern : {"val-*.tar", "train-{000002..000000}.tar", "train-{000001.tar",
                              "train-{a..b}.tar", "train-{1}.tar"}) {
    CAPTURE(pattern);
    CHECK_THROWS_AS(open(pattern), InvalidArgument);
  }
  CHECK_THROWS_AS(open("train-@000003.tar"), IoError);
  CHECK_THROWS_AS(Dataset::open(std::vector<Path>{}), InvalidArgument);
  // A file whose name looks like a pattern is opened by its name.
  std::filesystem::copy_file(made.shards[1], folder / "odd@12[a].tar");
  check_samples(open("odd@12[a].tar"), all.subspan(5, 3));
}

/// A scan finds everything that is in the manifest, except for the shape of TFRecords.
void check_scanned(const std::filesystem::path& path, Format format, Layout layout) {
  MadeDataset made = make_dataset(
      path,
      {.format = format, .spec = spec_of(9, 7, 3, DType::kUint8, layout), .shards = {6, 1, 0, 5}});
  std::filesystem::remove(path / kManifestName);
  OpenOptions options;
  if (format == Format::kTfrecord) {
    const Dataset blind = Dataset::open(path);
    CHECK_FALSE(blind.has_spec());
    check_samples(blind, made.samples);
    CHECK_THROWS_AS(blind.spec(), Unsupported);
    CHECK_THROWS_AS(Loader(blind), Unsupported);
    options.spec = spec_of(9, 8, 3);  // not the size of the samples
    CHECK_FALSE(Dataset::open(path, {}, options).has_spec());
    options.spec = made.manifest.spec;
  }
  const Dataset dataset = Dataset::open(path, {}, options);
  check_samples(dataset, made.samples);
  CHECK(dataset.spec() == made.manifest.spec);
  check_samples(Dataset::open(made.shards[3], {}, options), std::span(made.samples).subspan(7));
  LoaderOptions sequential;
  sequential.batch_size = 6;
  sequential.threads = 1;
  Loader loader(dataset, sequential);
  const auto batch = loader.next();
  REQUIRE(batch);
  for (std::size_t i = 0; i < 6; ++i) CHECK(same_bytes((*batch)[i], made.samples[i].tensor));
  if (format != Format::kTfrecord) {
    CHECK(batch->is_view());
    CHECK(dataset.rows(0, 6).stride_bytes() == made.entries()[0].columns->image.stride);
  }
}

TEST_CASE("shards without their manifest give the same samples", "[reader][dataset]") {
  const TempFolder folder;
  for (const Format format : kFormats) {
    for (const Layout layout : {Layout::kChw, Layout::kHwc}) {
      CAPTURE(name(format), name(layout));
      check_scanned(folder / fmt::format("{}-{}", name(format), name(layout)), format, layout);
    }
  }
}

TEST_CASE("a split is chosen by name", "[reader][dataset]") {
  const TempFolder folder;
  const MadeDataset val = make_dataset(folder.path(), {.shards = {4}, .split = "val", .seed = 9});
  check_whole(Dataset::open(folder.path()), val);  // the only one
  check_whole(Dataset::open(folder.path(), "val"), val);
  CHECK_THAT(message_of<InvalidArgument>([&] { (void)Dataset::open(folder.path(), "train"); }),
             contains("train"));
  const MadeDataset train = make_dataset(folder.path(), {.shards = {2, 3}}, &val);
  check_whole(Dataset::open(folder.path()), train);
  check_whole(Dataset::open(folder.path(), "train"), train);
  check_whole(Dataset::open(folder / kManifestName, "val"), val);
  try {
    (void)Dataset::open(folder.path(), "test");
    FAIL("there is no such split");
  } catch (const InvalidArgument& error) {
    CHECK_THAT(error.what(), contains("test"));
    CHECK_THAT(error.hint(), contains("train") && contains("val"));
  }
  const TempFolder others;
  const MadeDataset a = make_dataset(others.path(), {.split = "a"});
  (void)make_dataset(others.path(), {.split = "b"}, &a);
  CHECK_THROWS_AS(Dataset::open(others.path()), InvalidArgument);  // two, and none is train
  // Without a manifest, the beginning of the names is the split.
  std::filesystem::remove(folder / kManifestName);
  check_samples(Dataset::open(folder.path(), "val"), val.samples);
  check_samples(Dataset::open(folder.path()), train.samples);  // not mixed with val
  CHECK_THROWS_AS(Dataset::open(folder.path(), "test"), InvalidArgument);
}

TEST_CASE("the error of something missing has its name", "[reader][dataset]") {
  const TempFolder folder;
  for (const char* path : {"missing", "missing/dataset.json", "missing.tar"}) {
    CHECK_THAT(message_of<IoError>([&] { (void)Dataset::open(folder / path); }), contains(path));
  }
  CHECK_THAT(message_of<InvalidArgument>([&] { (void)Dataset::open(folder.path()); }),
             contains(folder.path().string()));
  std::filesystem::create_directory(folder / "folder.tar");
  CHECK_THROWS_AS(Dataset::open(std::vector{folder / "folder.tar"}), IoError);
  const MadeDataset made = make_dataset(folder / "made", {});
  std::filesystem::remove(made.shards[1]);
  const Dataset dataset = Dataset::open(made.folder);  // opens no shard yet
  CHECK(same_bytes(test::bytes_of(dataset, 0), made.samples[0].tensor));
  CHECK_THAT(message_of<IoError>([&] { (void)dataset[5]; }), contains("train-000001.tar"));
  CHECK_THROWS_AS(dataset.rows(5, 2), IoError);
  CHECK_NOTHROW(dataset[8]);
}

TEST_CASE("rows are a strided view of one shard", "[reader][dataset]") {
  const TempFolder folder;
  for (const Format format : kFormats) {
    CAPTURE(name(format));
    MadeDataset made = make_dataset(folder / std::string(name(format)),
                                    {.format = format, .shards = {5, 0, 3, 4}});
    const Dataset dataset = Dataset::open(made.folder);
    const std::vector<std::uint64_t> ends{5, 8, 12};
    for (std::uint64_t first = 0; first <= 12; ++first) {
      const auto end = std::ranges::upper_bound(ends, first);
      const std::uint64_t together = end == ends.end() ? 0 : *end - first;
      CHECK(dataset.contiguous_rows(first) == together);
      for (std::uint64_t count = 0; count <= 13; ++count) {
        CAPTURE(first, count);
        if (count > together) {
          CHECK_THROWS_AS(dataset.rows(first, count), InvalidArgument);
          continue;
        }
        const Rows rows = dataset.rows(first, count);
        CHECK(rows.size() == count);
        for (std::uint64_t i = 0; i < count; ++i) {
          CHECK(same_bytes(rows[i], made.samples[first + i].tensor));
          CHECK(rows[i].data() == rows.data() + i * rows.stride_bytes());
          const Sample sample = dataset[first + i];
          CHECK(rows[i].data() == sample.bytes().data());  // the same mapping
        }
        if (count > 0) CHECK(rows.stride_bytes() == made.entries()[0].columns->image.stride);
        CHECK_NOTHROW(rows.lease().check());
      }
    }
    try {
      (void)dataset.rows(3, 4);
      FAIL("these are of two shards");
    } catch (const InvalidArgument& error) {
      CHECK_THAT(error.hint(), contains("2"));
    }
    CHECK_THROWS_AS(dataset.rows(UINT64_MAX, 1), InvalidArgument);
    CHECK_THROWS_AS(dataset.rows(1, UINT64_MAX), InvalidArgument);
    CHECK(dataset.contiguous_rows(UINT64_MAX) == 0);
  }
}

TEST_CASE("views outlive their dataset", "[reader][dataset]") {
  const TempFolder folder;
  const MadeDataset made = make_dataset(folder.path(), {.shards = {6, 6}});
  std::optional<Dataset> dataset = Dataset::open(folder.path());
  const Sample sample = (*dataset)[7];
  const Rows rows = dataset->rows(0, 6);
  std::optional<Rows> others = dataset->rows(6, 6);
  const Lease lease = others->lease();
  const auto* last = (*others)[5].data();
  others.reset();
  dataset.reset();
  CHECK(same_bytes(sample.bytes(), made.samples[7].tensor));
  CHECK(sample.key() == made.samples[7].name.key);
  for (std::size_t i = 0; i < 6; ++i) CHECK(same_bytes(rows[i], made.samples[i].tensor));
  CHECK(same_bytes({last, made.samples[11].tensor.size()}, made.samples[11].tensor));
  CHECK_NOTHROW(lease.check());
}

TEST_CASE("a dataset may have no samples", "[reader][dataset]") {
  const TempFolder folder;
  for (const Format format : kFormats) {
    CAPTURE(name(format));
    const MadeDataset made =
        make_dataset(folder / std::string(name(format)), {.format = format, .shards = {0, 0}});
    const Dataset dataset = Dataset::open(made.folder);
    check_whole(dataset, made);
    CHECK(dataset.rows(0, 0).size() == 0);
    CHECK(dataset.contiguous_rows(0) == 0);
    std::filesystem::remove(made.folder / kManifestName);
    const Dataset scanned = Dataset::open(made.folder);
    CHECK(scanned.size() == 0);
    CHECK(scanned.shard_count() == 2);
  }
}

TEST_CASE("ten thousand shards are opened without touching them", "[reader][dataset]") {
  constexpr std::uint64_t kShards = 10'000;
  const TempFolder folder;
  MadeDataset made = make_dataset(folder.path(), {.format = Format::kTfrecord, .shards = {3}});
  auto& entries = made.entries();
  for (std::uint64_t i = 1; i < kShards; ++i) {
    ShardEntry entry = entries[0];
    entry.file = fmt::format("train-{:06}.tfrecord", i);
    std::filesystem::create_hard_link(made.shards[0], folder / entry.file);
    entries.push_back(std::move(entry));
  }
  made.manifest.splits.begin()->second.samples = 3 * kShards;
  made.write_manifest();
  OpenOptions options;
  options.max_open_shards = 8;
  const std::size_t before = test::open_descriptors();
  const auto begin = std::chrono::steady_clock::now();
  const Dataset dataset = Dataset::open(folder.path(), {}, options);
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  WARN("opening 10,000 shards took " << time.count() << " s");
  CHECK(test::open_descriptors() == before);
  CHECK(dataset.size() == 3 * kShards);
  test::Random random(1);
  std::size_t most = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::uint64_t at = test::below(random, dataset.size());
    REQUIRE(same_bytes(test::bytes_of(dataset, at), made.samples[at % 3].tensor));
    if (i % 100 == 0) most = std::max(most, test::open_descriptors());
  }
  CHECK(most <= before + 8);
  LoaderOptions shuffled;
  shuffled.order.shuffle = Shuffle::kFull;
  shuffled.batch_size = 64;
  shuffled.threads = 3;
  Loader loader(dataset, shuffled);
  for (int i = 0; i < 10; ++i) {
    const auto batch = loader.next();
    REQUIRE(batch);
    for (std::size_t row = 0; row < batch->size(); ++row) {
      REQUIRE(same_bytes((*batch)[row], made.samples[batch->samples()[row] % 3].tensor));
    }
    // Each thread may hold one shard and evict another.
    CHECK(test::open_descriptors() <= before + 8 + 2 * 3);
  }
}

}  // namespace
}  // namespace precache
