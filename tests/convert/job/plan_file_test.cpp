// SPDX-License-Identifier: Apache-2.0
#include "convert/job/plan_file.hpp"

#include <set>

#include "precache/formats/error.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temp_folder.hpp"

namespace precache {
namespace {

const std::string kIdentity = "crc64:0123456789abcdef";

Listing listing_of(int samples) {
  Listing listing;
  for (int i = 0; i < samples; ++i) {
    const std::string path = "class" + std::to_string(i % 3) + "/" + std::to_string(i) + ".jpg";
    listing.add({path, static_cast<std::uint64_t>(100 + i), i, i % 3});
  }
  listing.sort_by_path();
  return listing;
}

void write(const std::filesystem::path& path, const Listing& listing, const Plan& plan) {
  const Keys keys(listing);
  PlanFile::write(path, kIdentity, SourceFacts(listing, keys, 4), {{plan}}, listing, keys);
}

TEST_CASE("a plan file has the shards of one split after those of another",
          "[convert][plan][roundtrip]") {
  const test::TempFolder folder;
  const Listing listing = listing_of(10);
  const Keys keys(listing);
  const std::vector<std::uint64_t> train{0, 2, 3, 5, 6, 8, 9};
  const std::vector<std::uint64_t> val{1, 4, 7};
  const Plan train_plan(train.size(), 2, 3);
  const Plan val_plan(val.size(), 1, std::nullopt);
  SourceFacts facts(listing, keys, 4);
  facts.splits = {{"train", 7, 2, "a"}, {"val", 3, 1, "b"}};
  PlanFile::write(folder / "plan", kIdentity, facts, {{train_plan, &train}, {val_plan, &val}},
                  listing, keys);
  const PlanFile file(folder / "plan");
  REQUIRE(file.shards() == 3);
  REQUIRE(file.facts().splits.size() == 2);
  CHECK(file.facts().splits[1].name == "val");
  CHECK(file.facts().splits[1].samples == 3);
  CHECK(file.facts().splits[1].fingerprint == "b");
  for (std::uint64_t shard = 0; shard < 2; ++shard) {
    const Slice slice = file.slice(shard);
    REQUIRE(slice.size() == train_plan.shard_records(shard));
    for (std::uint64_t slot = 0; slot < slice.size(); ++slot) {
      CHECK(slice.file(slot).path == listing[train[train_plan.sample(shard, slot)]].path);
    }
  }
  const Slice last = file.slice(2);
  REQUIRE(last.size() == 3);
  for (std::uint64_t slot = 0; slot < 3; ++slot) {
    CHECK(last.file(slot).path == listing[val[slot]].path);
  }
}

TEST_CASE("a plan file has the samples of each shard in the order of its records",
          "[convert][plan][roundtrip]") {
  const test::TempFolder folder;
  const Listing listing = listing_of(50);
  const Keys keys(listing);
  for (const std::optional<std::uint64_t> seed :
       {std::optional<std::uint64_t>(), std::optional<std::uint64_t>(7)}) {
    const Plan plan(50, 7, seed);
    write(folder / "plan", listing, plan);
    const PlanFile file(folder / "plan");
    CHECK(file.identity() == kIdentity);
    REQUIRE(file.shards() == 7);
    std::set<std::string> seen;
    for (std::uint64_t shard = 0; shard < 7; ++shard) {
      const Slice slice = file.slice(shard);
      REQUIRE(slice.size() == plan.shard_records(shard));
      CHECK(file.shard_records(shard) == slice.size());
      std::uint64_t bytes = 0;
      for (std::uint64_t slot = 0; slot < slice.size(); ++slot) {
        const std::uint64_t sample = plan.sample(shard, slot);
        CHECK(slice.file(slot).path == listing[sample].path);
        CHECK(slice.file(slot).mtime_ns == listing[sample].mtime_ns);
        CHECK(slice.key(slot, KeyRule::kPath, false) == keys.key(sample));
        bytes += slice.file(slot).size;
        seen.insert(std::string(slice.file(slot).path));
      }
      CHECK(file.source_bytes(shard) == bytes);
    }
    CHECK(seen.size() == 50);
    file.verify();
  }
}

TEST_CASE("a plan file keeps the facts about all samples and their final keys",
          "[convert][plan][roundtrip]") {
  const test::TempFolder folder;
  Listing listing;
  listing.add({"a.jpg", 5, 1, -1});
  listing.add({"a.png", 6, 2, 41});
  listing.add({"a_longer_name.png", 7, 3, 2});
  write(folder / "plan", listing, Plan(3, 1, std::nullopt));
  const PlanFile file(folder / "plan");
  const SourceFacts& facts = file.facts();
  CHECK(facts.samples == 3);
  CHECK(facts.bytes == 18);
  CHECK(facts.longest_key == "a_longer_name");
  CHECK(facts.limits == Keys(listing).limits());
  REQUIRE(facts.labels);
  CHECK(facts.labels->smallest == 2);
  CHECK(facts.labels->largest == 41);
  CHECK(facts.unused_classes == std::vector<std::uint64_t>{0, 1, 3});
  CHECK(facts.fingerprint == listing.fingerprint());
  CHECK(facts.stamp == listing.stamp());
  CHECK(file.slice(0).key(1, KeyRule::kPath, false) == "a~2");
}

TEST_CASE("empty shards have empty slices", "[convert][plan]") {
  const test::TempFolder folder;
  write(folder / "plan", listing_of(2), Plan({0, 2, 0}, std::nullopt));
  const PlanFile file(folder / "plan");
  CHECK(file.slice(0).size() == 0);
  CHECK(file.slice(1).size() == 2);
  CHECK(file.slice(2).size() == 0);
}

/// Reads all that a file has.
void read_all(const std::filesystem::path& path) {
  const PlanFile file(path);
  for (std::uint64_t shard = 0; shard < file.shards(); ++shard)
    static_cast<void>(file.slice(shard));
}

TEST_CASE("a plan file cut anywhere is corrupt", "[convert][plan][malformed]") {
  const test::TempFolder folder;
  write(folder / "plan", listing_of(5), Plan(5, 2, 1));
  const std::string whole = test::read_text(folder / "plan");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    test::write_text(folder / "plan", whole.substr(0, size));
    CAPTURE(size);
    REQUIRE_THROWS_AS(read_all(folder / "plan"), CorruptData);
  }
  test::write_text(folder / "plan", whole + "x");
  CHECK_THROWS_AS(read_all(folder / "plan"), CorruptData);
  std::filesystem::remove(folder / "plan");
  CHECK_THROWS_AS(read_all(folder / "plan"), IoError);
}

TEST_CASE("a plan file with any byte changed is refused and takes no memory",
          "[convert][plan][malformed]") {
  const test::TempFolder folder;
  write(folder / "plan", listing_of(5), Plan(5, 2, 1));
  const std::string whole = test::read_text(folder / "plan");
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const int change : {0x01, 0x80, 0xff}) {
      std::string text = whole;
      text[at] = static_cast<char>(text[at] ^ change);
      test::write_text(folder / "plan", text);
      CAPTURE(at, change);
      // The four bytes after the magic are the version.
      if (at >= 8 && at < 12) {
        REQUIRE_THROWS_AS(read_all(folder / "plan"), Unsupported);
      } else {
        REQUIRE_THROWS_AS(read_all(folder / "plan"), CorruptData);
      }
    }
  }
}

TEST_CASE("slices stay open until their shard is done", "[convert][plan]") {
  const test::TempFolder folder;
  write(folder / "plan", listing_of(5), Plan(5, 2, std::nullopt));
  const PlanFile file(folder / "plan");
  OpenSlices slices(file);
  const auto first = slices.of(0);
  CHECK(slices.of(0) == first);
  slices.close(0);
  CHECK(slices.of(0) != first);
  CHECK(first->size() == 3);
}

}  // namespace
}  // namespace precache
