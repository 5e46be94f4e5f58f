// SPDX-License-Identifier: Apache-2.0
#include "precache/convert/build.hpp"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

#include <thread>

#include "convert/job/work_folder.hpp"
#include "formats/bytes/crc32c.hpp"
#include "formats/os/file.hpp"
#include "precache/formats/error.hpp"
#include "precache/formats/manifest.hpp"
#include "precache/formats/usable_threads.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/pictures.hpp"
#include "tests/support/temp_folder.hpp"

namespace precache {
namespace {

namespace fs = std::filesystem;
using test::contents_of;
using test::TempFolder;

constexpr int kImages = 40;
constexpr int kBad = 3;

/// A folder of small images of three classes, a few of them broken.
void write_source(const fs::path& root) {
  for (int i = 0; i < kImages; ++i) {
    const auto size = static_cast<std::uint32_t>(20 + i);
    const auto picture = test::make_picture(size, 60 - size / 2, 3, static_cast<std::uint64_t>(i));
    const std::string stem = (i % 3 == 0   ? "ant/"
                              : i % 3 == 1 ? "bee/"
                                           : "cat/") +
                             std::to_string(i);
    test::Bytes bytes = i % 2 == 0 ? test::encode_png(picture) : test::encode_jpeg(picture);
    if (i % 15 == 7) bytes.resize(bytes.size() / 2);
    test::write_bytes(root / (stem + (i % 2 == 0 ? ".png" : ".jpg")), bytes);
  }
}

BuildOptions options_for(const fs::path& source, const fs::path& out,
                         const std::string& format = "tar") {
  BuildOptions options;
  options.source = source;
  options.out = out;
  options.format = parse_format(format);
  options.recipe.height = 16;
  options.recipe.width = 24;
  options.shard_count = 4;
  options.max_bad_percent = 10;
  return options;
}

BuildReport run(const BuildOptions& options) {
  JobProgress progress;
  return build(options, progress);
}

/// On this many threads, even if the machine has fewer.
BuildReport run_on(int threads, const BuildOptions& options) {
  const tbb::global_control limit(tbb::global_control::max_allowed_parallelism,
                                  static_cast<std::size_t>(threads));
  tbb::task_arena arena(threads);
  return arena.execute([&] { return run(options); });
}

void check_complete(const fs::path& out, const BuildReport& report) {
  CHECK((report.status == JobStatus::kComplete || report.status == JobStatus::kAlreadyComplete));
  CHECK_FALSE(fs::exists(out / ".precache"));
  const Manifest manifest = Manifest::read(out / kManifestName);
  for (const auto& [split_name, split] : manifest.splits) {
    std::uint64_t samples = 0;
    for (const auto& shard : split.shards) {
      const auto bytes = read_file(out / shard.file);
      CHECK(bytes.size() == shard.bytes);
      CHECK(crc32c::value(bytes) == shard.crc32c);
      samples += shard.samples;
    }
    CHECK(samples == split.samples);
  }
}

TEST_CASE("a build gives the same bytes on any number of threads",
          "[convert][build][concurrency][tbb]") {
  const TempFolder folder;
  write_source(folder / "source");
  for (const std::string format : {"tar", "tfrecord", "hdf5"}) {
    std::map<std::string, std::string> first;
    for (const int threads : {1, 2, 7}) {
      const auto out = folder / (format + std::to_string(threads));
      const BuildReport report = run_on(threads, options_for(folder / "source", out, format));
      CAPTURE(format, threads);
      check_complete(out, report);
      CHECK(report.samples == kImages - kBad);
      CHECK(report.skipped.size() == kBad);
      const auto contents = contents_of(out);
      CHECK(contents.size() == 6);  // four shards, manifest, skipped.tsv
      if (first.empty()) first = contents;
      CHECK(contents == first);
    }
  }
}

TEST_CASE("a build on one thread shares no unguarded data with the thread that syncs",
          "[convert][build][concurrency]") {
  const TempFolder folder;
  write_source(folder / "source");
  BuildOptions options = options_for(folder / "source", folder / "out");
  options.shard_count = 20;
  check_complete(options.out, run_on(1, options));
}

TEST_CASE("a build with one sample per shard gives the same bytes on any number of threads",
          "[convert][build][concurrency][tbb]") {
  const TempFolder folder;
  write_source(folder / "source");
  BuildOptions options = options_for(folder / "source", folder / "one");
  options.shard_count = kImages;
  check_complete(options.out, run_on(7, options));
  BuildOptions again = options;
  again.out = folder / "two";
  check_complete(again.out, run_on(1, again));
  CHECK(contents_of(options.out) == contents_of(again.out));
}

TEST_CASE("an interrupted build resumes where it stopped", "[convert][build][concurrency][tbb]") {
  const TempFolder folder;
  write_source(folder / "source");
  const BuildOptions whole = options_for(folder / "source", folder / "whole");
  check_complete(whole.out, run(whole));
  BuildOptions options = options_for(folder / "source", folder / "out");
  for (std::uint64_t stop_at = 3; stop_at < 30; stop_at += 9) {
    JobProgress progress;
    std::atomic<bool> done{false};
    std::thread watcher([&] {
      while (!done && progress.samples_done < stop_at) std::this_thread::yield();
      progress.stop = true;
    });
    const BuildReport report = build(options, progress);
    done = true;
    watcher.join();
    if (report.status == JobStatus::kComplete) break;
    CHECK(report.status == JobStatus::kInterrupted);
    CHECK_FALSE(fs::exists(options.out / kManifestName));
  }
  check_complete(options.out, run(options));
  CHECK(contents_of(options.out) == contents_of(whole.out));
}

TEST_CASE("a build that is stopped before its first sample writes no shard", "[convert][build]") {
  const TempFolder folder;
  write_source(folder / "source");
  const BuildOptions options = options_for(folder / "source", folder / "out");
  JobProgress progress;
  progress.stop = true;
  const BuildReport report = build(options, progress);
  CHECK(report.status == JobStatus::kInterrupted);
  CHECK(report.shards_done == 0);
  check_complete(options.out, run(options));
}

TEST_CASE("parts make the same dataset as one build", "[convert][build]") {
  const TempFolder folder;
  write_source(folder / "source");
  const BuildOptions whole = options_for(folder / "source", folder / "whole");
  check_complete(whole.out, run(whole));
  BuildOptions options = options_for(folder / "source", folder / "out");
  options.step = JobStep::kFinish;
  CHECK_THAT(test::message_of<InvalidArgument>([&] { run(options); }),
             test::contains("nothing to finish"));
  options.step = JobStep::kPart;
  options.share.count = 3;
  options.max_bad_percent = 50;  // the parts together stay below it
  for (const std::uint64_t part : {2U, 0U}) {
    options.share.index = part;
    CHECK(run(options).status == JobStatus::kPartDone);
  }
  BuildOptions finish = options;
  finish.share = {};
  finish.step = JobStep::kFinish;
  CHECK_THAT(test::message_of<InvalidArgument>([&] { run(finish); }), test::contains("missing"));
  CHECK_FALSE(fs::exists(options.out / kManifestName));
  options.share.index = 1;
  CHECK(run(options).status == JobStatus::kPartDone);
  check_complete(options.out, run(finish));
  CHECK(contents_of(options.out) == contents_of(whole.out));
}

TEST_CASE("neither the same build nor another one changes a finished dataset", "[convert][build]") {
  const TempFolder folder;
  write_source(folder / "source");
  const BuildOptions options = options_for(folder / "source", folder / "out");
  check_complete(options.out, run(options));
  const auto before = contents_of(options.out);
  const BuildReport again = run(options);
  CHECK(again.status == JobStatus::kAlreadyComplete);
  CHECK(again.converted == 0);
  CHECK(again.shards_resumed == 4);
  CHECK(contents_of(options.out) == before);

  const auto refused = [&](const auto& change) {
    BuildOptions other = options;
    change(other);
    CHECK_THROWS_AS(run(other), InvalidArgument);
    CHECK(contents_of(options.out) == before);
  };
  refused([](BuildOptions& o) { o.seed = 1; });
  refused([](BuildOptions& o) { o.shuffle = false; });
  refused([](BuildOptions& o) { o.shard_count = 5; });
  refused([](BuildOptions& o) { o.format = Format::kHdf5; });
  refused([](BuildOptions& o) { o.recipe.width = 25; });
  refused(
      [](BuildOptions& o) { o.recipe.width = 25, o.split = "val"; });  // a dataset has one recipe
  test::write_bytes(folder / "source/ant/new.png", test::encode_png(test::make_picture(9, 9)));
  refused([](BuildOptions&) {});

  BuildOptions replaced = options;
  replaced.overwrite = true;
  const BuildReport report = run(replaced);
  check_complete(options.out, report);
  CHECK(report.samples == kImages - kBad + 1);
}

TEST_CASE("a new split leaves the others untouched and takes their classes", "[convert][build]") {
  const TempFolder folder;
  write_source(folder / "source");
  for (const char* name : {"cat/x.png", "bee/y.png"}) {
    test::write_bytes(folder / "more" / name, test::encode_png(test::make_picture(30, 30)));
  }
  const BuildOptions options = options_for(folder / "source", folder / "out");
  check_complete(options.out, run(options));
  const auto before = contents_of(options.out);
  BuildOptions more = options_for(folder / "more", folder / "out");
  more.split = "val";
  more.shard_count = 1;
  check_complete(more.out, run(more));
  auto after = contents_of(options.out);
  CHECK(after.erase("val-000000.tar") == 1);
  CHECK(after.at("skipped.tsv") == before.at("skipped.tsv"));
  for (const auto& [file, content] : before) {
    if (file != kManifestName) CHECK(after.at(file) == content);
  }
  const Manifest manifest = Manifest::read(options.out / kManifestName);
  CHECK(manifest.classes == std::vector<std::string>{"ant", "bee", "cat"});
  CHECK(manifest.splits.at("val").samples == 2);
  test::write_bytes(folder / "more/dog/z.png", test::encode_png(test::make_picture(30, 30)));
  more.split = "test";
  CHECK_THAT(test::message_of<InvalidArgument>([&] { run(more); }),
             test::contains("the class 'dog' is not known"));
}

TEST_CASE("too many bad samples fail the build, which resumes when more are allowed",
          "[convert][build]") {
  const TempFolder folder;
  write_source(folder / "source");
  BuildOptions options = options_for(folder / "source", folder / "out");
  options.max_bad_percent = 1;
  const BuildReport failed = run(options);
  CHECK(failed.status == JobStatus::kTooManyBad);
  CHECK_FALSE(failed.skipped.empty());
  CHECK_FALSE(fs::exists(options.out / kManifestName));
  CHECK(fs::exists(options.out / "skipped.tsv"));
  options.fail_on_bad = true;
  options.max_bad_percent = 100;
  CHECK(run(options).status == JobStatus::kTooManyBad);
  options.fail_on_bad = false;
  check_complete(options.out, run(options));
  const BuildOptions whole = options_for(folder / "source", folder / "whole");
  check_complete(whole.out, run(whole));
  CHECK(contents_of(options.out) == contents_of(whole.out));
  const std::string skipped = test::read_text(options.out / "skipped.tsv");
  CHECK(std::count(skipped.begin(), skipped.end(), '\n') == 1 + kBad);
  CHECK_THAT(skipped, test::contains("train\tbee/7.jpg\tdecode\t"));
}

TEST_CASE("a shard without survivors has no records", "[convert][build]") {
  const TempFolder folder;
  test::write_text(folder / "source/a/1.png", "no image");
  test::write_bytes(folder / "source/a/2.png", test::encode_png(test::make_picture(9, 9)));
  for (const std::string format : {"tar", "tfrecord", "hdf5"}) {
    BuildOptions options = options_for(folder / "source", folder / format, format);
    options.shard_count = 2;
    options.shuffle = false;
    options.max_bad_percent = 50;
    check_complete(options.out, run(options));
    const auto split = Manifest::read(options.out / kManifestName).splits.at("train");
    CHECK(split.shards[0].samples == 0);
    CHECK(split.shards[1].samples == 1);
    CHECK(split.skipped == 1);
  }
}

TEST_CASE("a changed source ends the build", "[convert][build]") {
  const TempFolder folder;
  write_source(folder / "source");
  BuildOptions options = options_for(folder / "source", folder / "out");
  JobProgress progress;
  progress.stop = true;
  static_cast<void>(build(options, progress));  // freezes the listing
  test::write_text(folder / "source/ant/0.png", "another file");
  CHECK_THAT(test::message_of<IoError>([&] { run(options); }), test::contains("ant/0.png"));
  CHECK_FALSE(fs::exists(options.out / kManifestName));
  options.overwrite = true;
  check_complete(options.out, run(options));
}

TEST_CASE("only one build at a time works on a folder", "[convert][build]") {
  const TempFolder folder;
  write_source(folder / "source");
  const BuildOptions options = options_for(folder / "source", folder / "out");
  for (const bool shared : {true, false}) {
    const WorkFolder other(options.out, "val", shared);
    CHECK_THAT(test::message_of<IoError>([&] { run(options); }),
               test::contains("another process is writing to"));
  }
  check_complete(options.out, run(options));
}

TEST_CASE("an estimate says what a build will do and writes nothing", "[convert][build]") {
  const TempFolder folder;
  write_source(folder / "source");
  fs::create_directory(folder / "source/dog");
  const BuildOptions options = options_for(folder / "source", folder / "out", "tfrecord");
  const BuildEstimate estimate = estimate_build(options);
  CHECK_FALSE(fs::exists(options.out));
  CHECK(estimate.samples == kImages);
  CHECK(estimate.classes.size() == 4);
  CHECK(estimate.empty_classes == std::vector<std::string>{"dog"});
  CHECK(estimate.shards == 4);
  CHECK(estimate.splits.front().largest_shard_samples == 10);
  CHECK(estimate.splits.front().smallest_shard_samples == 10);
  CHECK(estimate.tensor_bytes == 16 * 24 * 3);
  CHECK(estimate.bytes_needed == kImages * estimate.record_bytes);
  CHECK(estimate.bytes_free > 0);
}

TEST_CASE("at least one thread may be used", "[convert][build]") { CHECK(usable_threads() >= 1); }

}  // namespace
}  // namespace precache
