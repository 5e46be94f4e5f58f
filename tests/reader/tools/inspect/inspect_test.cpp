// SPDX-License-Identifier: Apache-2.0
#include "precache/tools/inspect.hpp"

#include <nlohmann/json.hpp>
#include <set>

#include "precache/formats/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/child.hpp"
#include "tests/support/corpora.hpp"
#include "tests/support/datasets.hpp"
#include "tests/support/tar_writer.hpp"

namespace precache {
namespace {

using test::DatasetPlan;
using test::TempFolder;
using Kind = Inspection::Kind;

Inspection inspect(const std::filesystem::path& path) { return inspect(path, InspectOptions{}); }

TEST_CASE("a dataset is described by its manifest", "[reader][inspect]") {
  for (const Format format : test::kFormats) {
    CAPTURE(name(format));
    const TempFolder folder;
    DatasetPlan plan;
    plan.format = format;
    const auto made = test::make_dataset(folder / "set", plan);
    const Inspection facts = inspect(made.folder);
    CHECK(facts.kind == Kind::kDataset);
    CHECK(facts.format == name(format));
    CHECK(facts.has_manifest);
    CHECK(facts.files == 3);
    CHECK(facts.files_read == 3);
    CHECK(facts.samples == 12);
    CHECK(facts.spec == plan.spec);
    CHECK(facts.splits.size() == 1);
    CHECK(facts.access.batches == AccessFacts::Batches::kViews);
    CHECK(facts.access.stride_bytes ==
          made.manifest.splits.at("train").shards[0].columns->image.stride);
    CHECK(facts.first_keys.size() == 5);
    CHECK(facts.first_keys[4] == made.samples[4].name.key);
    REQUIRE(facts.classes);
    CHECK(facts.classes->is_complete);
    CHECK(facts.classes->labels_read == 12);
    CHECK(facts.classes->unlabelled == 2);
    CHECK(facts.classes->counts[0].name == "cat");
    REQUIRE(facts.overhead_bytes());
    CHECK(*facts.overhead_bytes() == facts.bytes - 12 * plan.spec.size_bytes());
    CHECK(facts.faults.empty());
    CHECK(facts.unsupported_reasons.empty());
    CHECK_FALSE(facts.tar);
  }
}

TEST_CASE("a shard of a dataset is described by the manifest next to it", "[reader][inspect]") {
  const TempFolder folder;
  const auto made = test::make_dataset(folder / "set", {});
  const Inspection facts = inspect(made.shards[1]);
  CHECK(facts.kind == Kind::kShard);
  CHECK(facts.has_manifest);
  CHECK(facts.samples == 3);
  CHECK(headline(facts) == "tar shard of a precache dataset");
}

TEST_CASE("shards that are missing, truncated or different from the manifest are faults",
          "[reader][inspect][malformed]") {
  const TempFolder folder;
  const auto made = test::make_dataset(folder / "set", {});
  std::filesystem::remove(made.shards[0]);
  test::cut_file(made.shards[1], 1000);
  const Inspection facts = inspect(made.folder);
  REQUIRE(facts.faults.size() == 2);
  CHECK(facts.faults[0].file == made.shards[0]);
  CHECK_THAT(facts.faults[1].reason, test::contains("1000 bytes"));
  CHECK(facts.samples == 4);  // of the last
}

TEST_CASE("a wrong manifest is a fault", "[reader][inspect][malformed]") {
  const TempFolder folder;
  auto made = test::make_dataset(folder / "set", {});
  made.entries()[0].columns.edit().image.stride = 1;
  made.write_manifest();
  const Inspection facts = inspect(made.folder);
  REQUIRE(facts.faults.size() == 1);
  CHECK_THAT(facts.faults[0].reason, test::contains("overlap"));
}

TEST_CASE("splits with different strides are views", "[reader][inspect]") {
  const TempFolder folder;
  const auto train = test::make_dataset(folder.path(), {});
  DatasetPlan plan;
  plan.split = "val";
  plan.key_prefix = std::string(300, 'k');
  const auto both = test::make_dataset(folder.path(), plan, &train);
  REQUIRE(both.manifest.splits.at("train").shards[0].columns->image.stride !=
          both.manifest.splits.at("val").shards[0].columns->image.stride);
  const Inspection facts = inspect(folder.path());
  CHECK(facts.access.batches == AccessFacts::Batches::kViews);
  CHECK_FALSE(facts.access.stride_bytes);
  InspectOptions options;
  options.split = "val";
  CHECK(precache::inspect(folder.path(), options).access.stride_bytes ==
        both.manifest.splits.at("val").shards[0].columns->image.stride);
}

TEST_CASE("records at different distances are not views", "[reader][inspect]") {
  const TempFolder folder;
  const std::string npy =
      test::npy_file("{'descr': '|u1', 'fortran_order': False, 'shape': (5, 5, 3), }", 75);
  test::write_text(folder / "a.tar",
                   test::tar_entry("a.npy", npy) + test::tar_entry("a.cls", "1") +
                       test::tar_entry("a.txt", "caption") + test::tar_entry("b.npy", npy) +
                       test::tar_entry("b.cls", "4") + test::tar_entry("c.npy", npy) +
                       test::tar_entry("c.cls", "4") + test::kTarEnd + test::kTarEnd);
  const Inspection facts = inspect(folder / "a.tar");
  CHECK(facts.kind == Kind::kShard);
  CHECK(facts.samples == 3);
  CHECK(facts.spec == test::spec_of(5, 5, 3, DType::kUint8, Layout::kHwc));
  CHECK(facts.access.batches == AccessFacts::Batches::kGathered);
  CHECK_FALSE(facts.access.stride_bytes);
  REQUIRE(facts.tar);
  CHECK(facts.tar->patterns.size() == 2);
  REQUIRE(facts.classes);
  REQUIRE(facts.classes->counts.size() == 2);
  CHECK(facts.classes->counts[1].label == 4);
}

TEST_CASE("paths that do not exist are refused", "[reader][inspect]") {
  const TempFolder folder;
  CHECK_THROWS_AS(inspect(folder / "none.tar"), IoError);
  CHECK_THROWS_AS(inspect(folder / "*.tar"), InvalidArgument);
  CHECK_THROWS_AS(inspect(folder.path()), InvalidArgument);
}

TEST_CASE("names that are not UTF-8 are replaced in JSON", "[reader][inspect][malformed]") {
  const TempFolder folder;
  test::write_text(folder / "a.tar",
                   test::tar_entry("\xff\x1b\"<.jpg", "no image") + test::kTarEnd);
  const auto json = nlohmann::json::parse(to_json({inspect(folder / "a.tar")}));
  CHECK(json["version"] == 1);
  CHECK(json["paths"][0]["first_keys"][0] == "\ufffd\x1b\"<");
}

TEST_CASE("spread numbers cover the whole range", "[reader][inspect]") {
  using Numbers = std::vector<std::uint64_t>;
  CHECK(spread(3, 10) == Numbers{0, 1, 2});
  CHECK(spread(0, 10).empty());
  const Numbers some = spread(1'000'000, 100);
  CHECK(std::set<std::uint64_t>(some.begin(), some.end()).size() == 100);
  CHECK(std::ranges::is_sorted(some));
  CHECK(some.front() < 100'000);
  CHECK(some.back() > 900'000);
  CHECK(some == spread(1'000'000, 100));
}

TEST_CASE("text is shortened between letters", "[reader][inspect]") {
  CHECK(shortened("abcdef", 6) == "abcdef");
  CHECK(shortened("abcdefg", 6) == "abc...");
  CHECK(shortened("\u00fc\u00fc\u00fc\u00fc\u00fc", 4) == "\u00fc...");
  CHECK(shortened("abc", 2) == "..");
}

TEST_CASE("files of the corpora are inspected without harm", "[reader][inspect][malformed]") {
  for (const char* const kind : {"tar", "tfrecord", "hdf5"}) {
    const auto files = test::corpus(kind);
    if (files.empty()) PRECACHE_SKIP("a corpus is missing");
    for (const auto& path : files) {
      CAPTURE(path);
      CHECK(test::ends_normally([&] {
        try {
          const Inspection facts = inspect(path);
          if (to_json({facts}).empty() || headline(facts).empty()) ::_exit(1);
          (void)fact_rows(facts);
          (void)fact_tables(facts, 10);
        } catch (const Error&) {
        }
      }));
    }
  }
}

}  // namespace
}  // namespace precache
