// SPDX-License-Identifier: Apache-2.0
#include "precache/convert/sidecars.hpp"

#include <nlohmann/json.hpp>

#include "convert/sidecars/dali_index.hpp"
#include "convert/sidecars/tfds_metadata.hpp"
#include "convert/sidecars/wids_index.hpp"
#include "precache/formats/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/datasets.hpp"
#include "tests/support/tar_writer.hpp"

namespace precache {
namespace {

namespace fs = std::filesystem;
using test::contains;
using test::kTarEnd;
using test::MadeDataset;
using test::make_dataset;
using test::read_text;
using test::tar_entry;
using test::TempFolder;
using test::write_text;

using Kinds = std::vector<SidecarKind>;

std::string tar_index(const TempFolder& folder, const std::string& archive) {
  write_text(folder / "a.tar", archive);
  return dali::index_of(folder / "a.tar", Format::kTar).text;
}

std::uint64_t wids_samples(const TempFolder& folder, const std::string& archive) {
  write_text(folder / "a.tar", archive);
  return wids::read_shard(folder / "a.tar").samples;
}

TEST_CASE("kinds of indexes are parsed from a list", "[convert][index]") {
  CHECK(parse_index_kinds("dali") == Kinds{SidecarKind::kDali});
  CHECK(parse_index_kinds("tfds,dali,tfds") == Kinds{SidecarKind::kDali, SidecarKind::kTfds});
  for (const char* names : {"", ",", "dali,", ",dali", "DALI", "dali wids", "hdf5"}) {
    CAPTURE(names);
    CHECK_THROWS_AS(parse_index_kinds(names), InvalidArgument);
  }
}

TEST_CASE("a kind must fit the format", "[convert][index]") {
  CHECK_NOTHROW(check_sidecar_kinds({SidecarKind::kDali, SidecarKind::kWids}, Format::kTar));
  CHECK_NOTHROW(check_sidecar_kinds({SidecarKind::kDali, SidecarKind::kTfds}, Format::kTfrecord));
  CHECK_NOTHROW(check_sidecar_kinds({SidecarKind::kVds}, Format::kHdf5));
  CHECK_THROWS_AS(check_sidecar_kinds({SidecarKind::kVds}, Format::kTar), InvalidArgument);
  CHECK_THROWS_AS(check_sidecar_kinds({SidecarKind::kWids}, Format::kTfrecord), InvalidArgument);
  CHECK_THROWS_AS(check_sidecar_kinds({SidecarKind::kDali}, Format::kHdf5), InvalidArgument);
}

TEST_CASE("an index of a tar groups files as webdataset does", "[convert][index][tar]") {
  const TempFolder folder;
  CHECK(tar_index(folder, tar_entry("__meta__/x.txt", "x") + tar_entry("README", "x") +
                              tar_entry("a/.hidden", "x") + tar_entry("a/b", "", {.type = '5'}) +
                              tar_entry("a/b.jpg", "12345") + tar_entry("a/b.seg.png", "1") +
                              tar_entry("a/c d.jpg", "") + tar_entry("a/c d.t\nt", "1") +
                              tar_entry("a/e.", "1") + tar_entry("f%20.x", "1") + kTarEnd) ==
        "v1.2 3\n"
        "jpg 4096 5 a/b.jpg seg.png 5120 1 a/b.seg.png\n"
        "jpg 6144 0 a/c%20d.jpg t%0At 6656 1 a/c%20d.t%0At\n"
        "x 8704 1 f%20.x\n");
  const std::string long_name(300, 'n');
  CHECK(tar_index(folder, test::pax_header(test::pax_record("path", long_name + ".npy")) +
                              tar_entry("short", "1") + kTarEnd) ==
        "v1.2 1\nnpy 1536 1 " + long_name + ".npy\n");
  CHECK(tar_index(folder, kTarEnd) == "v1.2 0\n\n");
}

TEST_CASE("a sparse file cannot be indexed", "[convert][index][tar]") {
  const TempFolder folder;
  const std::string archive = tar_entry("a.npy", "1", {.type = 'S', .magic = test::kGnuMagic});
  CHECK_THROWS_AS(tar_index(folder, archive + kTarEnd), Unsupported);
}

TEST_CASE("a cut shard gives no index", "[convert][index][malformed]") {
  const TempFolder folder;
  const std::string archive = tar_entry("a.npy", std::string(700, 'x')) + tar_entry("a.cls", "1");
  for (std::size_t size = 1; size < archive.size(); size += 7) {
    if (size % 512 == 0) continue;  // may be the end of an entry
    CAPTURE(size);
    CHECK_THROWS_AS(tar_index(folder, archive.substr(0, size)), CorruptData);
    CHECK_THROWS_AS(wids_samples(folder, archive.substr(0, size)), CorruptData);
  }
  const MadeDataset made =
      make_dataset(folder / "made", {.format = Format::kTfrecord, .shards = {3}});
  const std::string records = read_text(made.shards[0]);
  const std::size_t record_bytes = records.size() / 3;
  for (std::size_t size = 1; size < records.size(); size += 5) {
    if (size % record_bytes == 0) continue;
    CAPTURE(size);
    write_text(folder / "a.tfrecord", records.substr(0, size));
    CHECK_THROWS_AS(dali::index_of(folder / "a.tfrecord", Format::kTfrecord), CorruptData);
  }
}

TEST_CASE("the index from the manifest is the one from a scan", "[convert][index][tfrecord]") {
  const TempFolder folder;
  MadeDataset made = make_dataset(folder / "made", {.format = Format::kTfrecord});
  for (std::size_t i = 0; i < made.shards.size(); ++i) {
    const dali::Index scanned = dali::index_of(made.shards[i], Format::kTfrecord);
    const dali::Index known = dali::index_of(made.shards[i], made.entries()[i]);
    CHECK(known.text == scanned.text);
    CHECK(known.samples == made.entries()[i].samples);
  }
  for (const auto& lie : std::vector<std::function<void(ShardEntry&)>>{
           [](ShardEntry& entry) { entry.samples += 1; },
           [](ShardEntry& entry) { entry.bytes -= 1; },
           [](ShardEntry& entry) { entry.columns.edit().image.stride *= 2; }}) {
    ShardEntry entry = made.entries()[0];
    lie(entry);
    CHECK_THROWS_AS(dali::index_of(made.shards[0], entry), CorruptData);
  }
}

TEST_CASE("DALI indexes are recognised by their text", "[convert][index]") {
  CHECK(dali::is_index("v1.2 1\nnpy 512 1 a.npy\n", Format::kTar));
  CHECK(dali::is_index("v1.1 1\nnpy 512 1\n", Format::kTar));
  CHECK_FALSE(dali::is_index("0 64\n", Format::kTar));
  CHECK(dali::is_index("0 64\n64 64\n", Format::kTfrecord));
  CHECK(dali::is_index("", Format::kTfrecord));
  CHECK_FALSE(dali::is_index("\n", Format::kTfrecord));
  CHECK_FALSE(dali::is_index("12\n", Format::kTfrecord));
  CHECK_FALSE(dali::is_index("my notes\n", Format::kTfrecord));
}

TEST_CASE("samples are counted as wids counts them", "[convert][index][tar]") {
  const TempFolder folder;
  CHECK(wids_samples(folder, kTarEnd) == 0);
  CHECK(wids_samples(folder, tar_entry("README", "x") + kTarEnd) == 0);
  CHECK(wids_samples(folder, tar_entry("a.x", "1") + tar_entry("a.y", "1") + tar_entry("b.x", "1") +
                                 tar_entry("c/a.x", "1") + tar_entry("c.d/e", "1") + kTarEnd) == 4);
  // If the file name has no dot, a dot in a folder name ends the key.
  CHECK(wids_samples(folder, tar_entry("k.d/e", "1") + tar_entry("k.x", "1") + kTarEnd) == 1);
  CHECK(wids_samples(folder, tar_entry("1.x", "1", {.prefix = "long"}) +
                                 tar_entry("2.x", "1", {.prefix = "long"}) + kTarEnd) == 2);
}

TEST_CASE("shards whose samples wids would mix up are refused", "[convert][index][tar]") {
  const TempFolder folder;
  const auto pax = [](const std::string& path) {
    return test::pax_header(test::pax_record("path", path));
  };
  for (const std::string& archive : {
           tar_entry("1.x", "1", {.prefix = "a"}) + tar_entry("1.x", "1", {.prefix = "b"}),
           tar_entry("1.x", "1", {.prefix = "a"}) + tar_entry("1.y", "1", {.prefix = "b"}),
           tar_entry("1.x", "1") + tar_entry("1.x", "1"),
           pax("whole.x") + tar_entry("cut", "1"),
           pax("a.x") + tar_entry("1.x", "1") + pax("a.y") + tar_entry("2.y", "1"),
       }) {
    CHECK_THROWS_AS(wids_samples(folder, archive + kTarEnd), Unsupported);
  }
  write_text(folder / "a?b.tar", kTarEnd);
  CHECK_THROWS_AS(wids::read_shard(folder / "a?b.tar"), Unsupported);
  write_text(folder / "\xff.tar", kTarEnd);
  CHECK_THROWS_AS(wids::read_shard(folder / "\xff.tar"), Unsupported);
}

/// A manifest of shards that do not exist.
Manifest manifest_of(std::size_t shards) {
  Manifest manifest;
  manifest.format = Format::kTfrecord;
  manifest.spec = test::spec_of(4, 5, 3);
  SplitEntry& split = manifest.splits["train"];
  for (std::size_t i = 0; i < shards; ++i) {
    split.shards.push_back({fmt::format("train-{:06}.tfrecord", i), 1, 64, 0, {}});
  }
  split.samples = shards;
  return manifest;
}

TEST_CASE("metadata for TensorFlow Datasets names the shards correctly", "[convert][index]") {
  const TempFolder folder;
  const std::function<std::string(std::size_t)> file_template = [&](std::size_t shards) {
    const auto path = tfds::write_metadata(folder.path(), manifest_of(shards));
    const auto json = nlohmann::json::parse(read_text(path));
    return json.at("splits").at(0).at("filepathTemplate").get<std::string>();
  };
  // Shard numbers have five digits, or more if there are more shards.
  CHECK(file_template(1) == "{SPLIT}-0{SHARD_INDEX}.{FILEFORMAT}");
  CHECK(file_template(99'999) == "{SPLIT}-0{SHARD_INDEX}.{FILEFORMAT}");
  CHECK(file_template(100'000) == "{SPLIT}-{SHARD_INDEX}.{FILEFORMAT}");
  CHECK_THROWS_AS(file_template(1'000'000), Unsupported);
  Manifest other = manifest_of(2);
  other.splits["train"].shards[1].file = "other.tfrecord";
  CHECK_THROWS_AS(tfds::write_metadata(folder.path(), other), Unsupported);
}

TEST_CASE("class names with line breaks are left out for TensorFlow Datasets", "[convert][index]") {
  const TempFolder folder;
  Manifest manifest = manifest_of(1);
  manifest.classes = {"a", "b"};
  tfds::write_metadata(folder.path(), manifest);
  CHECK(read_text(folder / "label.labels.txt") == "a\nb\n");
  manifest.classes = {"a", "b\nc"};
  tfds::write_metadata(folder.path(), manifest);
  CHECK_FALSE(fs::exists(folder / "label.labels.txt"));
  CHECK_THAT(read_text(folder / "features.json"), contains(R"("numClasses": "2")"));
  tfds::remove_metadata(folder.path());
  CHECK(fs::is_empty(folder.path()));
}

TEST_CASE("any shard of a dataset selects its whole split", "[convert][index]") {
  const TempFolder folder;
  const MadeDataset train = make_dataset(folder.path(), {});
  const MadeDataset val = make_dataset(folder.path(), {.shards = {2}, .split = "val"}, &train);
  val.write_manifest();
  const SidecarReport report = write_sidecars(train.shards[1], {{SidecarKind::kWids}, {}});
  REQUIRE(report.written.size() == 1);
  CHECK(report.written[0].file == folder / "train.wids.json");
  CHECK(report.written[0].samples == 12);
  CHECK(write_sidecars(folder.path(), {{SidecarKind::kWids}, {}}).written.size() == 2);
  CHECK(write_sidecars(folder.path(), {{SidecarKind::kWids}, "val"}).written[0].samples == 2);
}

}  // namespace
}  // namespace precache
