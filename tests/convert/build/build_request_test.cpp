// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "precache/convert/build.hpp"
#include "precache/formats/error.hpp"
#include "precache/formats/manifest.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/pictures.hpp"
#include "tests/support/temp_folder.hpp"

namespace precache {
namespace {

namespace fs = std::filesystem;
using test::TempFolder;

/// Two classes of two images, and options for them.
BuildOptions small_request(const TempFolder& folder) {
  for (const char* name : {"a/1.png", "a/2.png", "b/3.png", "b/4.png"}) {
    test::write_bytes(folder / "source" / name, test::encode_png(test::make_picture(12, 12)));
  }
  BuildOptions options;
  options.source = folder / "source";
  options.out = folder / "out";
  options.recipe.height = options.recipe.width = 8;
  return options;
}

BuildReport run(const BuildOptions& options) {
  JobProgress progress;
  return build(options, progress);
}

template <typename Change>
std::string refusal(const BuildOptions& options, const Change& change) {
  BuildOptions other = options;
  change(other);
  return test::message_of<InvalidArgument>([&] { run(other); });
}

TEST_CASE("wrong requests are refused before anything is written", "[convert][build][malformed]") {
  const TempFolder folder;
  const BuildOptions options = small_request(folder);
  for (const char* split : {"", ".hidden", "-x", "a/b", "..", "a b", "\xff", "a\n"}) {
    CAPTURE(split);
    CHECK_THAT(refusal(options, [&](BuildOptions& o) { o.split = split; }),
               test::contains("split"));
  }
  CHECK_THROWS_AS(run([&] {
                    BuildOptions o = options;
                    o.split = std::string(101, 'x');
                    return o;
                  }()),
                  InvalidArgument);
  refusal(options, [](BuildOptions& o) { o.recipe.height = 0; });
  refusal(options, [](BuildOptions& o) { o.max_bad_percent = 101; });
  refusal(options, [](BuildOptions& o) { o.max_bad_percent = -1; });
  refusal(options, [](BuildOptions& o) { o.step = JobStep::kPart, o.share = {2, 2}; });
  refusal(options, [](BuildOptions& o) {
    o.step = JobStep::kPart, o.share = {1, 2}, o.overwrite = true;
  });
  refusal(options, [&](BuildOptions& o) { o.out = o.source / "out"; });
  refusal(options, [&](BuildOptions& o) { o.out = o.source; });
  refusal(options, [&](BuildOptions& o) { o.out = folder / "source/../source/a/out"; });
  refusal(options, [&](BuildOptions& o) { o.source = folder / "source/a/1.png"; });
  CHECK_FALSE(fs::exists(options.out));
  CHECK(test::contents_of(options.source).size() == 4);
}

TEST_CASE("an OUT whose name begins like SOURCE does not lie inside it", "[convert][build]") {
  const TempFolder folder;
  BuildOptions options = small_request(folder);
  options.out = folder / "source-shards";
  CHECK(run(options).status == JobStatus::kComplete);
}

TEST_CASE("a request that does not fit the source can be corrected",
          "[convert][build][malformed]") {
  const TempFolder folder;
  const BuildOptions options = small_request(folder);
  CHECK_THAT(refusal(options, [](BuildOptions& o) { o.shard_count = 5; }),
             test::contains("`shard_count` must be at most 4, the number of samples, got 5"));
  // The corrected request is a new build, not another one.
  CHECK(run(options).status == JobStatus::kComplete);
}

TEST_CASE("an unfinished build is continued only with the same options", "[convert][build]") {
  const TempFolder folder;
  BuildOptions options = small_request(folder);
  JobProgress progress;
  progress.stop = true;
  static_cast<void>(build(options, progress));
  CHECK_THAT(refusal(options, [](BuildOptions& o) { o.seed = 7; }),
             test::contains("seed: 0 in `out`, 7 here"));
  CHECK_THAT(refusal(options, [](BuildOptions& o) { o.recipe.width = 9; }),
             test::contains("recipe.size[1]: 8 in `out`, 9 here"));
  CHECK_THAT(refusal(options, [](BuildOptions& o) { o.labels = "none"; }),
             test::contains("labels"));
  options.fail_on_bad = true;  // not part of the identity
  options.max_bad_percent = 5;
  CHECK(run(options).status == JobStatus::kComplete);
}

TEST_CASE("third-party shards in OUT are never touched", "[convert][build]") {
  const TempFolder folder;
  BuildOptions options = small_request(folder);
  test::write_text(options.out / "train-000000.tar", "precious");
  test::write_text(options.out / "train-notes.tar", "no number, no shard");
  CHECK_THAT(refusal(options, [](BuildOptions&) {}), test::contains("train-000000.tar"));
  CHECK(test::read_text(options.out / "train-000000.tar") == "precious");
  options.overwrite = true;
  CHECK_THAT(test::message_of<InvalidArgument>([&] { run(options); }),
             test::contains("refusing to replace"));
  CHECK(test::read_text(options.out / "train-000000.tar") == "precious");
  CHECK(test::read_text(options.out / "train-notes.tar") == "no number, no shard");
}

TEST_CASE("the error for a broken manifest or work folder names the file",
          "[convert][build][malformed]") {
  const TempFolder folder;
  const BuildOptions options = small_request(folder);
  test::write_text(options.out / kManifestName, "{");
  CHECK_THAT(test::message_of<CorruptData>([&] { run(options); }), test::contains(kManifestName));
  fs::remove(options.out / kManifestName);
  JobProgress progress;
  progress.stop = true;
  static_cast<void>(build(options, progress));
  const auto job = options.out / ".precache/train/job.json";
  const std::string text = test::read_text(job);
  for (const std::string& broken :
       {std::string(), std::string("{}"), text.substr(0, text.size() / 2)}) {
    test::write_text(job, broken);
    CHECK_THAT(test::message_of<CorruptData>([&] { run(options); }), test::contains("job.json"));
  }
  test::write_text(job, text);
  for (const auto& entry : std::filesystem::directory_iterator(options.out / ".precache/train")) {
    if (entry.path().filename().string().starts_with("plan.")) {
      test::write_text(entry.path(), "nothing");
    }
  }
  CHECK_THAT(test::message_of<CorruptData>([&] { run(options); }), test::contains("plan."));
}

TEST_CASE("a shard that was damaged after it was written is made again", "[convert][build]") {
  const TempFolder folder;
  BuildOptions options = small_request(folder);
  options.shard_count = 2;
  options.step = JobStep::kPart;
  options.share = {0, 1};
  CHECK(run(options).status == JobStatus::kPartDone);
  const std::string shard = test::read_text(options.out / "train-000001.tar");
  test::write_text(options.out / "train-000001.tar", shard.substr(0, 100));
  const BuildReport report = run(options);
  CHECK(report.status == JobStatus::kPartDone);
  CHECK(report.shards_resumed == 1);
  CHECK(report.converted == 2);
  CHECK(test::read_text(options.out / "train-000001.tar") == shard);
}

TEST_CASE("the manifest has the classes of a CSV file, or none without labels",
          "[convert][build]") {
  const TempFolder folder;
  BuildOptions options = small_request(folder);
  test::write_text(folder / "l.csv", "a/1.png,zebra\nb/3.png,ape\n");
  options.labels = (folder / "l.csv").string();
  BuildReport report = run(options);
  CHECK(report.samples == 2);
  CHECK(Manifest::read(options.out / kManifestName).classes ==
        std::vector<std::string>{"ape", "zebra"});
  options.labels = "none";
  options.out = folder / "none";
  CHECK(run(options).samples == 4);
  CHECK(Manifest::read(options.out / kManifestName).classes.empty());
}

TEST_CASE("skipped.tsv escapes unusual paths", "[convert][build]") {
  const TempFolder folder;
  BuildOptions options = small_request(folder);
  options.max_bad_percent = 100;
  test::write_text(options.source / "a/tab\there\nand\\there.png", "no image");
  CHECK(run(options).status == JobStatus::kComplete);
  const std::string table = test::read_text(options.out / "skipped.tsv");
  CHECK(table.starts_with("split\tpath\tstage\treason\n"));
  CHECK_THAT(table, test::contains("train\ta/tab\\there\\nand\\\\there.png\tdecode\t"));
  CHECK(std::count(table.begin(), table.end(), '\n') == 2);
}

}  // namespace
}  // namespace precache
