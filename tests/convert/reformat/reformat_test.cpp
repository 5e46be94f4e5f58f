// SPDX-License-Identifier: Apache-2.0
#include "precache/convert/reformat.hpp"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

#include "formats/bytes/crc32c.hpp"
#include "formats/os/file.hpp"
#include "precache/formats/error.hpp"
#include "precache/formats/manifest.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/datasets.hpp"
#include "tests/support/temp_folder.hpp"

namespace precache {
namespace {

namespace fs = std::filesystem;
using test::contents_of;
using test::TempFolder;

/// A dataset whose manifest has the CRCs of its files.
test::MadeDataset make(const fs::path& folder, const test::DatasetPlan& plan,
                       const test::MadeDataset* other = nullptr) {
  test::MadeDataset made = test::make_dataset(folder, plan, other);
  for (auto& [split_name, split] : made.manifest.splits) {
    for (ShardEntry& shard : split.shards) {
      shard.crc32c = crc32c::value(read_file(folder / shard.file));
    }
  }
  made.write_manifest();
  return made;
}

ReformatReport run(const ReformatOptions& options) {
  JobProgress progress;
  return reformat(options, progress);
}

ReformatOptions options_for(const fs::path& shards, const fs::path& out, const char* format) {
  ReformatOptions options;
  options.shards = shards;
  options.out = out;
  options.format = parse_format(format);
  return options;
}

TEST_CASE("shards of each format are converted to each other format", "[convert][roundtrip][tbb]") {
  const TempFolder folder;
  for (const DType dtype : {DType::kUint8, DType::kFloat16, DType::kBfloat16, DType::kFloat32}) {
    TensorSpec spec = test::spec_of(8, 6, 3);
    spec.dtype = dtype;
    for (const Format first : {Format::kTar, Format::kTfrecord, Format::kHdf5}) {
      const fs::path root = folder / fmt::format("{}-{}", name(dtype), name(first));
      const test::DatasetPlan plan{.format = first, .spec = spec, .shards = {5, 0, 3, 4}};
      // An old manifest without the limits of names: the first conversion computes them.
      make(root / "made", plan);
      CHECK(run(options_for(root / "made", root / "first", name(first).data())).converted == 12);
      const auto expected = contents_of(root / "first");
      fs::path before = root / "first";
      for (const char* format : {"tar", "tfrecord", "hdf5", name(first).data()}) {
        const fs::path after = root / fmt::format("{}-again", before.filename().string());
        CHECK(run(options_for(before, after, format)).status == JobStatus::kComplete);
        before = after;
      }
      CAPTURE(name(dtype), name(first));
      CHECK(contents_of(before) == expected);
    }
  }
}

TEST_CASE("a conversion gives the same bytes on any number of threads",
          "[convert][concurrency][tbb]") {
  const TempFolder folder;
  make(folder / "made", {.shards = {40, 1, 33}});
  std::map<std::string, std::string> first;
  for (const int threads : {1, 2, 7}) {
    ReformatOptions options =
        options_for(folder / "made", folder / fmt::format("out{}", threads), "hdf5");
    options.seed = 3;
    options.shard_count = 5;
    const tbb::global_control limit(tbb::global_control::max_allowed_parallelism,
                                    static_cast<std::size_t>(threads));
    tbb::task_arena arena(threads);
    CHECK(arena.execute([&] { return run(options); }).shards_done == 5);
    const auto contents = contents_of(options.out);
    if (first.empty()) first = contents;
    CHECK(contents == first);
  }
}

TEST_CASE("an interrupted conversion resumes and gives the same bytes", "[convert][tbb]") {
  const TempFolder folder;
  make(folder / "made", {.shards = std::vector<std::uint64_t>(30, 2)});
  ReformatOptions options = options_for(folder / "made", folder / "out", "tfrecord");
  JobProgress progress;
  progress.stop = true;
  CHECK(reformat(options, progress).status == JobStatus::kInterrupted);
  CHECK_FALSE(fs::exists(options.out / kManifestName));
  CHECK(fs::exists(options.out / ".precache"));
  CHECK(run(options).status == JobStatus::kComplete);
  CHECK_FALSE(fs::exists(options.out / ".precache"));
  ReformatOptions at_once = options_for(folder / "made", folder / "at once", "tfrecord");
  CHECK(run(at_once).status == JobStatus::kComplete);
  CHECK(contents_of(options.out) == contents_of(at_once.out));
  CHECK(run(options).status == JobStatus::kAlreadyComplete);
}

TEST_CASE("a manifest that misplaces its records is refused", "[convert][malformed]") {
  const TempFolder folder;
  for (const Format format : {Format::kTar, Format::kTfrecord, Format::kHdf5}) {
    const fs::path root = folder / std::string(name(format));
    const test::MadeDataset made = make(root / "made", {.format = format});
    const auto damage = [&](const std::function<void(SplitEntry&)>& change) {
      test::MadeDataset lying = made;
      change(lying.manifest.splits.begin()->second);
      lying.write_manifest();
      CHECK_THROWS_AS(run(options_for(root / "made", root / "out", "tar")), CorruptData);
      CHECK_FALSE(fs::exists(root / "out" / kManifestName));
      fs::remove_all(root / "out");
    };
    damage([](SplitEntry& split) { split.shards[1].crc32c ^= 1; });
    damage([](SplitEntry& split) { split.shards[0].columns.edit().image.stride <<= 20; });
    damage([](SplitEntry& split) {
      split.shards[0].columns.edit().image.stride = 64;
      split.shards[0].columns.edit().image.base = 0;
    });
    // Records would be too small for their names.
    damage([](SplitEntry& split) { split.names = NameLimits(); });
  }
}

TEST_CASE("a conversion is refused if it would overwrite data", "[convert]") {
  const TempFolder folder;
  make(folder / "made", {});
  CHECK_THROWS_AS(run(options_for(folder / "made", folder / "made", "tar")), InvalidArgument);
  CHECK_THROWS_AS(run(options_for(folder / "made", folder / "made" / ".", "tar")), InvalidArgument);
  CHECK_THROWS_AS(run(options_for("", folder / "out", "tar")), InvalidArgument);
  CHECK_THROWS_AS(run(options_for(folder / "made", folder / "out", "zip")), InvalidArgument);
  CHECK_THROWS_AS(run(options_for(folder / "none", folder / "out", "tar")), Error);
  test::write_text(folder / "file", "x");
  CHECK_THROWS_AS(run(options_for(folder / "made", folder / "file", "tar")), IoError);
  CHECK_FALSE(fs::exists(folder / "out"));
}

}  // namespace
}  // namespace precache
