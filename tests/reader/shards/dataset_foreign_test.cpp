// SPDX-License-Identifier: Apache-2.0
// Third-party shards, and manifests that are wrong.
#include <fmt/format.h>

#include <functional>

#include "precache/formats/error.hpp"
#include "precache/reader/dataset.hpp"
#include "precache/reader/loader.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/corpora.hpp"
#include "tests/support/datasets.hpp"

namespace precache {
namespace {

using test::contains;
using test::kFormats;
using test::MadeDataset;
using test::make_dataset;
using test::message_of;
using test::TempFolder;

constexpr const char* kJpegMagic = "\xff\xd8\xff";

/// Checks that samples that are not tensors can only be read one by one.
void check_encoded(const Dataset& dataset, std::uint64_t samples, const std::string& magic) {
  REQUIRE(dataset.size() == samples);
  for (std::uint64_t i = 0; i < samples; ++i) {
    CHECK(test::text_of(test::bytes_of(dataset, i)).substr(0, 4).find(magic) != std::string::npos);
    CHECK_NOTHROW(dataset[i].key());
  }
  CHECK_FALSE(dataset.has_spec());
  const std::string reason = message_of<Unsupported>([&] { (void)dataset.spec(); });
  CHECK_THAT(reason, contains("JPEG") || contains("PNG"));
  CHECK(message_of<Unsupported>([&] { (void)dataset.rows(0, 1); }) == reason);
  CHECK(message_of<Unsupported>([&] { const Loader loader(dataset); }) == reason);
}

TEST_CASE("encoded images of third-party shards are read one by one", "[reader][dataset]") {
  struct Corpus {
    const char* path;
    std::uint64_t samples;
    const char* magic;
  };
  for (const auto& [path, samples, magic] :
       {Corpus{"tar/tfds/00000.tar", 3, kJpegMagic},
        Corpus{"tar/aistore/single-png-cls.tar", 1, "PNG"},
        Corpus{"tfrecord/tfds/dmlab-train.tfrecord-00000-of-00001", 2, kJpegMagic},
        Corpus{"tfrecord/custom-obj/test.record", 8, kJpegMagic}}) {
    CAPTURE(path);
    const auto file = test::corpora() / path;
    if (!std::filesystem::exists(file)) {
      WARN("there is no " << file);
      continue;
    }
    check_encoded(Dataset::open(file), samples, magic);
    check_encoded(Dataset::open(std::vector{file, file}), 2 * samples, magic);
  }
}

TEST_CASE("a folder of third-party shards is opened in the order of names", "[reader][dataset]") {
  const auto file = test::corpora() / "tfrecord/tfds/dmlab-train.tfrecord-00000-of-00001";
  const auto other = test::corpora() / "tfrecord/tfds/dmlab-validation.tfrecord-00000-of-00001";
  if (!std::filesystem::exists(file)) PRECACHE_SKIP("there is no " << file);
  const TempFolder folder;
  for (const char* name : {"b.tfrecord", "a.tfrecords", "c.txt"}) {
    std::filesystem::copy_file(file, folder / name);
  }
  std::filesystem::create_directory(folder / "d.tar");
  std::filesystem::copy_file(other, folder / "a.tfrecord");
  const Dataset dataset = Dataset::open(folder.path());
  check_encoded(dataset, 6, kJpegMagic);
  const Dataset first = Dataset::open(other);
  CHECK(test::same_bytes(test::bytes_of(dataset, 0), test::bytes_of(first, 0)));
  CHECK(dataset[0].label() == first[0].label());
}

TEST_CASE("splits of a folder without a manifest are not mixed", "[reader][dataset]") {
  const TempFolder folder;
  for (const std::string split : {"train", "training2", "val"}) {
    (void)make_dataset(folder.path(), {.shards = {3}, .split = split});
  }
  std::filesystem::remove(folder / kManifestName);
  CHECK(Dataset::open(folder.path()).size() == 3);
  CHECK(Dataset::open(folder.path(), "train").size() == 3);
  CHECK(Dataset::open(folder.path(), "val").size() == 3);
  CHECK_THROWS_AS(Dataset::open(folder.path(), "test"), InvalidArgument);
  std::filesystem::remove(folder / "train-000000.tar");
  CHECK_THAT(message_of<InvalidArgument>([&] { (void)Dataset::open(folder.path()); }),
             contains("several splits"));
}

TEST_CASE("the names of shards have the split of a folder as a word", "[reader][dataset]") {
  const TempFolder folder;
  for (const std::string split : {"cars-train", "cars-test"}) {
    (void)make_dataset(folder.path(), {.shards = {split == "cars-test" ? 2U : 3U}, .split = split});
  }
  std::filesystem::remove(folder / kManifestName);
  CHECK(Dataset::open(folder.path()).size() == 3);
  CHECK(Dataset::open(folder.path(), "cars-test").size() == 2);
  CHECK(Dataset::open(folder.path(), "test").size() == 2);
  CHECK(Dataset::open(folder / "*.tar").size() == 5);
  (void)make_dataset(folder.path(), {.shards = {4}, .split = "bikes-train"});
  std::filesystem::remove(folder / kManifestName);
  for (const char* split : {"", "train"}) {
    try {
      (void)Dataset::open(folder.path(), split);
      FAIL("it was opened");
    } catch (const InvalidArgument& error) {
      CHECK_THAT(error.hint(), contains("bikes-train, cars-test, cars-train"));
    }
  }
}

TEST_CASE("a dataset does not depend on the folder that the process is in", "[reader][dataset]") {
  const TempFolder folder;
  const MadeDataset made = make_dataset(folder / "data", {.shards = {3}});
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  const Dataset dataset = Dataset::open("data");
  std::filesystem::current_path(before);
  CHECK(test::same_bytes(test::bytes_of(dataset, 2), made.samples[2].tensor));
}

TEST_CASE("shards of different tensors have no spec in common", "[reader][dataset]") {
  const TempFolder folder;
  const MadeDataset small = make_dataset(folder / "small", {.shards = {4}});
  const MadeDataset large =
      make_dataset(folder / "large", {.spec = test::spec_of(9, 9, 3), .shards = {3}});
  const MadeDataset empty = make_dataset(folder / "empty", {.shards = {0}});
  const Dataset both =
      Dataset::open(std::vector{empty.shards[0], small.shards[0], large.shards[0]});
  CHECK(both.size() == 7);
  CHECK(test::same_bytes(test::bytes_of(both, 4), large.samples[0].tensor));
  CHECK_THAT(message_of<Unsupported>([&] { (void)both.spec(); }),
             contains("8x6") && contains("9x9") && contains("large"));
  const Dataset fitting = Dataset::open(std::vector{small.shards[0], empty.shards[0]});
  CHECK(fitting.spec() == small.manifest.spec);
}

struct Lie {
  const char* what;
  std::function<void(ShardEntry&)> tell;
};

constexpr std::uint64_t kFar = std::uint64_t{1} << 40;
constexpr std::uint64_t kHuge = UINT64_MAX - 7;

const std::vector<Lie> kLies{
    {"image base", [](ShardEntry& entry) { entry.columns.edit().image.base = entry.bytes - 10; }},
    {"image far away", [](ShardEntry& entry) { entry.columns.edit().image.base = kFar; }},
    {"image stride", [](ShardEntry& entry) { entry.columns.edit().image.stride *= 4; }},
    {"images on one place", [](ShardEntry& entry) { entry.columns.edit().image.stride = 0; }},
    {"images that overlap", [](ShardEntry& entry) { entry.columns.edit().image.stride = 10; }},
    {"very many samples on one place",
     [](ShardEntry& entry) {
       entry.samples = UINT64_MAX / 2;
       entry.columns.edit().image.stride = entry.columns.edit().label.stride =
           entry.columns.edit().key.stride = 0;
     }},
    {"image overflow", [](ShardEntry& entry) { entry.columns.edit().image.stride = kHuge; }},
    {"image base overflow", [](ShardEntry& entry) { entry.columns.edit().image.base = kHuge; }},
    {"no image",
     [](ShardEntry& entry) {
       entry.columns.edit().image = {kFar, 0, ""};
     }},
    {"image of no type", [](ShardEntry& entry) { entry.columns.edit().image.type = ""; }},
    {"image of another type",
     [](ShardEntry& entry) { entry.columns.edit().image.type = "float16"; }},
    {"label base", [](ShardEntry& entry) { entry.columns.edit().label.base = entry.bytes; }},
    {"label overflow", [](ShardEntry& entry) { entry.columns.edit().label.stride = kHuge; }},
    {"label type", [](ShardEntry& entry) { entry.columns.edit().label.type = "roman"; }},
    {"key base", [](ShardEntry& entry) { entry.columns.edit().key.base = entry.bytes; }},
    {"key stride", [](ShardEntry& entry) { entry.columns.edit().key.stride = kFar; }},
    {"key type", [](ShardEntry& entry) { entry.columns.edit().key.type = "runes"; }},
    {"samples", [](ShardEntry& entry) { entry.samples += 1000; }},
    {"very many samples", [](ShardEntry& entry) { entry.samples = UINT64_MAX; }},
};

TEST_CASE("a manifest with wrong places is refused", "[reader][dataset][malformed]") {
  const TempFolder folder;
  for (const Format format : kFormats) {
    for (const Lie& lie : kLies) {
      CAPTURE(name(format), lie.what);
      MadeDataset made = make_dataset(folder.path(), {.format = format});
      ShardEntry& entry = made.entries()[1];
      std::uint64_t& samples = made.manifest.splits.begin()->second.samples;
      samples -= entry.samples;
      lie.tell(entry);
      samples += entry.samples;  // the sum has to match
      made.write_manifest();
      CHECK_THROWS_AS(Dataset::open(folder.path()), CorruptData);
      CHECK_THROWS_AS(Dataset::open(made.shards[1]), CorruptData);
    }
  }
}

TEST_CASE("a shard whose size differs from the manifest is refused",
          "[reader][dataset][malformed]") {
  const TempFolder folder;
  for (const Format format : kFormats) {
    for (const int change : {-1, 1, 4096}) {
      CAPTURE(name(format), change);
      MadeDataset made = make_dataset(folder.path(), {.format = format});
      std::filesystem::resize_file(made.shards[1],
                                   made.entries()[1].bytes + static_cast<std::uint64_t>(change));
      const Dataset dataset = Dataset::open(folder.path());
      CHECK_NOTHROW(dataset[0]);
      CHECK_THAT(message_of<CorruptData>([&] { (void)dataset[5]; }),
                 contains(made.shards[1].filename().string()));
      CHECK_THROWS_AS(dataset.rows(5, 1), CorruptData);
      LoaderOptions options;
      options.batch_size = 4;
      options.threads = 2;
      Loader loader(dataset, options);
      CHECK(loader.next());
      CHECK_THROWS_AS(loader.next(), CorruptData);
    }
  }
}

TEST_CASE("invalid labels are refused", "[reader][dataset][malformed]") {
  const TempFolder folder;
  for (const Format format : {Format::kTar, Format::kTfrecord}) {
    CAPTURE(name(format));
    MadeDataset made = make_dataset(folder.path(), {.format = format, .shards = {5}});
    const Column column = made.entries()[0].columns->label;
    const test::Bytes rubbish(12, std::byte{0xff});
    File(made.shards[0], O_RDWR).write_at(column.base + 2 * column.stride, rubbish);
    const Dataset dataset = Dataset::open(folder.path());
    CHECK_NOTHROW(dataset[1]);
    CHECK_THROWS_AS(dataset[2], CorruptData);
    LoaderOptions options;
    options.batch_size = 5;
    Loader loader(dataset, options);
    CHECK_THROWS_AS(loader.next(), CorruptData);
  }
}

TEST_CASE("a spec without elements is refused", "[reader][dataset]") {
  const TempFolder folder;
  const MadeDataset made =
      make_dataset(folder / "made", {.format = Format::kTfrecord, .shards = {0, 2}});
  std::filesystem::remove(made.folder / kManifestName);
  OpenOptions options;
  options.spec = test::spec_of(0, 4, 3);
  for (const auto& shard : made.shards) {
    CHECK_THROWS_AS(Dataset::open(shard, {}, options), InvalidArgument);
  }
}

TEST_CASE("a spec that differs from the shards is refused", "[reader][dataset]") {
  const TempFolder folder;
  for (const Format format : kFormats) {
    CAPTURE(name(format));
    const auto path = folder / std::string(name(format));
    const MadeDataset made = make_dataset(path, {.format = format, .shards = {0, 2}});
    const auto open = [&](const TensorSpec& spec) {
      OpenOptions options;
      options.spec = spec;
      return Dataset::open(path, {}, options);
    };
    TensorSpec other = made.manifest.spec;
    other.layout = other.layout == Layout::kChw ? Layout::kHwc : Layout::kChw;
    const auto check = [&] {
      CHECK(open(made.manifest.spec).spec() == made.manifest.spec);
      CHECK_THAT(message_of<InvalidArgument>([&] { (void)open(other); }),
                 contains(made.shards[1].string()) && contains(other.text()) &&
                     contains(made.manifest.spec.text()));
    };
    check();
    if (format == Format::kTfrecord) continue;  // it has no spec without a manifest
    std::filesystem::remove(path / kManifestName);
    check();
  }
}

TEST_CASE("a file that is not a manifest is refused", "[reader][dataset][malformed]") {
  const TempFolder folder;
  const MadeDataset made = make_dataset(folder.path(), {});
  const std::string good = test::read_text(folder / kManifestName);
  for (const std::string& text : {std::string("{}"), std::string("not JSON"), std::string(),
                                  good.substr(0, good.size() / 2)}) {
    test::write_text(folder / kManifestName, text);
    CHECK_THROWS_AS(Dataset::open(folder.path()), CorruptData);
    CHECK_THROWS_AS(Dataset::open(made.shards[0]), CorruptData);
  }
  Manifest empty = made.manifest;
  empty.splits.clear();
  test::write_text(folder / kManifestName, empty.to_json());
  CHECK_THAT(message_of<CorruptData>([&] { (void)Dataset::open(folder.path()); }),
             contains("no split"));
}

}  // namespace
}  // namespace precache
