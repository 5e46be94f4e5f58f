// SPDX-License-Identifier: Apache-2.0
#include "precache/convert/pack.hpp"

#include <fmt/format.h>

#include <map>

#include "formats/os/file.hpp"
#include "precache/formats/error.hpp"
#include "precache/formats/manifest.hpp"
#include "precache/reader/dataset.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/pictures.hpp"
#include "tests/support/temp_folder.hpp"

namespace precache {
namespace {

namespace fs = std::filesystem;
using test::contents_of;
using test::TempFolder;

constexpr int kImages = 24;

/// Images of two classes, and files that are not images.
std::map<std::string, test::Bytes> write_source(const fs::path& root) {
  std::map<std::string, test::Bytes> images;
  for (int i = 0; i < kImages; ++i) {
    const auto picture = test::make_picture(static_cast<std::uint32_t>(10 + i), 20, 3,
                                            static_cast<std::uint64_t>(i));
    const std::string key = fmt::format("{}/{:02}", i % 2 == 0 ? "ant" : "bee", i);
    images[key] = i % 3 == 0 ? test::encode_png(picture) : test::encode_jpeg(picture);
    // The extension is ignored.
    test::write_bytes(root / (key + ".JPEG"), images[key]);
  }
  test::write_text(root / "bee" / "text.jpg", "no image");
  return images;
}

PackOptions options_for(const fs::path& source, const fs::path& out, const char* format) {
  PackOptions options;
  options.source = source;
  options.out = out;
  options.format = parse_format(format);
  return options;
}

PackReport run(const PackOptions& options) {
  JobProgress progress;
  return pack(options, progress);
}

TEST_CASE("encoded images are packed unchanged", "[convert][pack][tbb]") {
  const TempFolder folder;
  const auto images = write_source(folder / "source");
  for (const char* format : {"tar", "tfrecord", "hdf5"}) {
    PackOptions options = options_for(folder / "source", folder / format, format);
    options.shard_count = 3;
    const PackReport report = run(options);
    CHECK(report.samples == kImages);
    CHECK(report.shards_done == 3);
    REQUIRE(report.skipped.size() == 1);
    CHECK(report.skipped[0].path == "bee/text.jpg");
    CHECK(as_text(read_file(options.out / "classes.txt")) == "ant\nbee\n");
    CHECK(fs::exists(options.out / "skipped.tsv"));
    CHECK_FALSE(fs::exists(options.out / kManifestName));
    CHECK_FALSE(fs::exists(options.out / ".precache"));
    const Dataset dataset = Dataset::open(options.out);
    REQUIRE(dataset.size() == kImages);
    for (std::uint64_t i = 0; i < dataset.size(); ++i) {
      const Sample sample = dataset[i];
      CAPTURE(format, sample.key());
      const auto& expected = images.at(sample.key());
      CHECK(std::ranges::equal(sample.bytes(), std::as_bytes(std::span(expected))));
      CHECK(sample.label() == (sample.key().starts_with("ant") ? 0 : 1));
    }
  }
}

TEST_CASE("shards of encoded images are packed again", "[convert][pack][roundtrip][tbb]") {
  const TempFolder folder;
  write_source(folder / "source");
  run(options_for(folder / "source", folder / "tar", "tar"));
  run(options_for(folder / "tar", folder / "tfrecord", "tfrecord"));
  run(options_for(folder / "tfrecord", folder / "hdf5", "hdf5"));
  run(options_for(folder / "hdf5", folder / "again", "tar"));
  auto first = contents_of(folder / "tar");
  auto last = contents_of(folder / "again");
  for (auto* contents : {&first, &last}) contents->erase("encoded.json");  // of another source
  first.erase("skipped.tsv");  // nothing was skipped the second time
  CHECK(last == first);
}

TEST_CASE("images are packed by size and in a shuffled order", "[convert][pack][tbb]") {
  const TempFolder folder;
  write_source(folder / "source");
  PackOptions options = options_for(folder / "source", folder / "out", "tar");
  options.shard_size_bytes = 12'000;
  options.seed = 1;
  const PackEstimate estimate = estimate_pack(options);
  CHECK_FALSE(fs::exists(options.out));
  const PackReport report = run(options);
  CHECK(report.shards_done == estimate.shards);
  CHECK(estimate.shards > 2);
  CHECK(report.bytes <= estimate.bytes_needed + 2048 * estimate.shards);
  for (std::uint64_t i = 0; i < estimate.shards; ++i) {
    CHECK(fs::file_size(options.out / fmt::format("train-{:06}.tar", i)) <= 15'000);
  }
  CHECK(Dataset::open(options.out).size() == kImages);
  PackOptions again = options;
  again.out = folder / "again";
  run(again);
  CHECK(contents_of(again.out) == contents_of(options.out));
}

TEST_CASE("a long name gets its own pax header", "[convert][pack]") {
  const TempFolder folder;
  const std::string name(190, 'x');
  const auto picture = test::encode_png(test::make_picture(4, 4, 3, 1));
  test::write_bytes(folder / "source" / "a" / (name + ".png"), picture);
  test::write_bytes(folder / "source" / "a" / "short.png", picture);
  run(options_for(folder / "source", folder / "out", "tar"));
  const Dataset dataset = Dataset::open(folder / "out");
  REQUIRE(dataset.size() == 2);
  CHECK(dataset[1].key() == "a/" + name);
  CHECK(dataset[0].key() == "a/short");
}

TEST_CASE("packing is refused if it would overwrite data or has nothing to pack",
          "[convert][pack]") {
  const TempFolder folder;
  write_source(folder / "source");
  run(options_for(folder / "source", folder / "out", "tar"));
  const auto before = contents_of(folder / "out");
  const PackReport again = run(options_for(folder / "source", folder / "out", "tar"));
  CHECK(again.status == JobStatus::kAlreadyComplete);
  CHECK(again.samples == kImages);
  CHECK_THROWS_AS(run(options_for(folder / "source", folder / "out", "tfrecord")), InvalidArgument);
  CHECK(contents_of(folder / "out") == before);
  PackOptions replace = options_for(folder / "source", folder / "out", "tfrecord");
  replace.overwrite = true;
  CHECK(run(replace).samples == kImages);
  CHECK_FALSE(fs::exists(folder / "out" / "train-000000.tar"));
  CHECK_THROWS_AS(run(options_for(folder / "source", folder / "source" / "out", "tar")),
                  InvalidArgument);
  test::write_text(folder / "dataset" / kManifestName, "{}");
  CHECK_THROWS_AS(run(options_for(folder / "source", folder / "dataset", "tar")), InvalidArgument);
  PackOptions many = options_for(folder / "source", folder / "many", "tar");
  many.shard_count = 100;
  CHECK_THROWS_AS(run(many), InvalidArgument);
  CHECK_FALSE(fs::exists(folder / "many"));
}

}  // namespace
}  // namespace precache
