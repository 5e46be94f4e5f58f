// SPDX-License-Identifier: Apache-2.0
#include "convert/job/shard_builder.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <nlohmann/json.hpp>

#include "formats/bytes/crc32c.hpp"
#include "precache/formats/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/shards.hpp"
#include "tests/support/temp_folder.hpp"
#include "tests/support/threads.hpp"

namespace precache {
namespace {

namespace fs = std::filesystem;
using test::Bytes;
using test::kFormats;
using test::Sample;
using test::TempFolder;

constexpr std::uint64_t kSlots = 6;
const auto kKeepNoResult = [](const ShardResult&) {};
const TensorSpec kSpec = test::spec_of(3, 5, 3);

std::vector<Sample> six_samples() {
  std::vector<SampleName> names;
  for (std::uint64_t i = 0; i < kSlots; ++i) {
    names.push_back(
        {"key/" + std::string(i, 'k') + std::to_string(i), static_cast<std::int64_t>(i) - 1});
  }
  return test::make_samples(names, kSpec.size_bytes());
}

std::unique_ptr<const Framing> framing_for(Format format, const std::vector<Sample>& samples) {
  NameLimits limits;
  for (const auto& sample : samples) limits.include(sample.name.key, sample.name.label);
  return test::make_framing(format, kSpec, limits, {"a", "b"});
}

/// The definition: holes are closed in ascending order, each by the shard's last surviving record.
std::vector<std::uint64_t> model(std::uint64_t slots, const std::vector<bool>& rejected) {
  std::vector<std::optional<std::uint64_t>> shard;
  for (std::uint64_t i = 0; i < slots; ++i)
    shard.push_back(rejected[i] ? std::nullopt : std::optional(i));
  for (std::size_t hole = 0; hole < shard.size(); ++hole) {
    while (!shard.empty() && !shard.back()) shard.pop_back();
    if (hole >= shard.size() || shard[hole]) continue;
    shard[hole] = shard.back();
    shard.pop_back();
  }
  std::vector<std::uint64_t> slots_left;
  for (const auto& slot : shard) slots_left.push_back(slot.value());
  return slots_left;
}

/// Writes or rejects all slots in this order; true if the builder reports the last one, and no
/// other, as the last.
bool fill(ShardBuilder& builder, const Framing& framing, const std::vector<Sample>& samples,
          const std::vector<bool>& rejected, const std::vector<std::uint64_t>& order) {
  bool last = false;
  for (const std::uint64_t slot : order) {
    if (last) return false;
    if (rejected[slot]) {
      last =
          builder.reject(slot, {"path " + std::to_string(slot), RejectionStage::kDecode, "broken"});
    } else {
      const auto record = test::frame(framing, samples[slot].name, samples[slot].tensor);
      last = builder.write(slot, record.bytes, record.crc, slot % 2 == 1);
    }
  }
  return last;
}

TEST_CASE("the holes of rejected samples are closed by the last survivors", "[convert][shard]") {
  const auto samples = six_samples();
  test::Random random(1);
  for (const Format format : kFormats) {
    const auto framing = framing_for(format, samples);
    for (unsigned subset = 0; subset < 1U << kSlots; ++subset) {
      std::vector<bool> rejected;
      for (unsigned i = 0; i < kSlots; ++i) rejected.push_back((subset >> i & 1U) != 0);
      std::vector<std::uint64_t> order{0, 1, 2, 3, 4, 5};
      std::shuffle(order.begin(), order.end(), random);
      const TempFolder folder;
      ShardBuilder builder(*framing, folder / "part", folder / "shard", kSlots);
      CAPTURE(name(format), subset);
      REQUIRE(fill(builder, *framing, samples, rejected, order));
      builder.complete([&](std::uint64_t slot) { return samples[slot].name; });
      CHECK_FALSE(fs::exists(folder / "shard"));
      const ShardResult result = builder.commit(kKeepNoResult);
      CHECK_FALSE(fs::exists(folder / "part"));

      std::vector<Sample> survivors;
      for (const auto slot : model(kSlots, rejected)) survivors.push_back(samples[slot]);
      const Bytes expected = test::assemble(*framing, survivors);
      const Bytes shard = read_file(folder / "shard");
      REQUIRE(shard == expected);
      CHECK(result.entry.file == "shard");
      CHECK(result.entry.samples == survivors.size());
      CHECK(result.entry.bytes == shard.size());
      CHECK(result.entry.crc32c == crc32c::value(shard));
      CHECK(result.entry.columns == framing->columns(survivors.size()));
      CHECK(result.skipped.size() == kSlots - survivors.size());
      // In the order of the slots, not of the calls.
      CHECK(std::ranges::is_sorted(result.skipped, {}, &SkippedSample::path));
      std::uint64_t damaged = 0;
      for (std::uint64_t slot = 1; slot < kSlots; slot += 2) damaged += rejected[slot] ? 0 : 1;
      CHECK(result.damaged == damaged);
    }
  }
}

TEST_CASE("a shard that keeps the order moves records down over holes", "[convert][shard]") {
  const auto samples = six_samples();
  for (const Format format : kFormats) {
    const auto framing = framing_for(format, samples);
    for (unsigned subset = 0; subset < 1U << kSlots; ++subset) {
      std::vector<bool> rejected;
      std::vector<Sample> survivors;
      for (unsigned i = 0; i < kSlots; ++i) {
        rejected.push_back((subset >> i & 1U) != 0);
        if (!rejected.back()) survivors.push_back(samples[i]);
      }
      const TempFolder folder;
      ShardBuilder builder(*framing, folder / "part", folder / "shard", kSlots);
      CAPTURE(name(format), subset);
      REQUIRE(fill(builder, *framing, samples, rejected, {5, 3, 1, 0, 2, 4}));
      builder.complete([&](std::uint64_t slot) { return samples[slot].name; }, true);
      const ShardResult result = builder.commit(kKeepNoResult);
      const Bytes shard = read_file(folder / "shard");
      REQUIRE(shard == test::assemble(*framing, survivors));
      CHECK(result.entry.crc32c == crc32c::value(shard));
      CHECK(result.entry.columns == framing->columns(survivors.size()));
    }
  }
}

TEST_CASE("a shard of many records with many holes follows the rule", "[convert][shard]") {
  constexpr std::uint64_t kMany = 300;
  std::vector<SampleName> names;
  for (std::uint64_t i = 0; i < kMany; ++i) names.push_back({"k" + std::to_string(i), 0});
  const auto samples = test::make_samples(names, kSpec.size_bytes());
  const auto framing = framing_for(Format::kTar, samples);
  test::Random random(2);
  for (const unsigned percent : {1U, 10U, 50U, 90U}) {
    std::vector<bool> rejected(kMany);
    std::vector<std::uint64_t> order(kMany);
    for (std::uint64_t i = 0; i < kMany; ++i) {
      rejected[i] = test::below(random, 100) < percent;
      order[i] = i;
    }
    std::shuffle(order.begin(), order.end(), random);
    const TempFolder folder;
    ShardBuilder builder(*framing, folder / "part", folder / "shard", kMany);
    REQUIRE(fill(builder, *framing, samples, rejected, order));
    builder.complete([&](std::uint64_t slot) { return samples[slot].name; });
    const ShardResult result = builder.commit(kKeepNoResult);
    std::vector<Sample> survivors;
    for (const auto slot : model(kMany, rejected)) survivors.push_back(samples[slot]);
    const Bytes shard = read_file(folder / "shard");
    CHECK(shard == test::assemble(*framing, survivors));
    CHECK(result.entry.crc32c == crc32c::value(shard));
  }
}

TEST_CASE("a shard is written by many threads at once", "[convert][shard][concurrency]") {
  constexpr std::uint64_t kMany = 200;
  constexpr std::size_t kThreads = 5;
  std::vector<SampleName> names;
  std::vector<bool> rejected;
  for (std::uint64_t i = 0; i < kMany; ++i) {
    names.push_back({"k" + std::to_string(i), 0});
    rejected.push_back(i % 7 == 3);
  }
  const auto samples = test::make_samples(names, kSpec.size_bytes());
  std::vector<Sample> survivors;
  for (const auto slot : model(kMany, rejected)) survivors.push_back(samples[slot]);
  for (const Format format : kFormats) {
    const auto framing = framing_for(format, samples);
    const TempFolder folder;
    ShardBuilder builder(*framing, folder / "part", folder / "shard", kMany);
    std::atomic<std::uint64_t> next{0};
    std::atomic<int> ends{0};
    test::on_threads(kThreads, [&](std::size_t) {
      for (std::uint64_t slot = next++; slot < kMany; slot = next++) {
        const bool last = fill(builder, *framing, samples, rejected, {slot});
        if (!last) continue;
        ++ends;
        builder.complete([&](std::uint64_t any) { return samples[any].name; });
      }
    });
    CHECK(ends == 1);
    const ShardResult result = builder.commit(kKeepNoResult);
    const Bytes shard = read_file(folder / "shard");
    CAPTURE(name(format));
    CHECK(shard == test::assemble(*framing, survivors));
    CHECK(result.entry.crc32c == crc32c::value(shard));
  }
}

TEST_CASE("shards are completed by many threads at once", "[convert][shard][concurrency]") {
  const auto samples = six_samples();
  for (const Format format : kFormats) {
    const auto framing = framing_for(format, samples);
    const Bytes expected = test::assemble(*framing, samples);
    const TempFolder folder;
    std::array<Bytes, 4> shards;
    test::on_threads(shards.size(), [&](std::size_t i) {
      const auto path = folder / std::to_string(i);
      ShardBuilder builder(*framing, path.string() + ".part", path, kSlots);
      const std::vector<bool> none(kSlots);
      if (!fill(builder, *framing, samples, none, {5, 4, 3, 2, 1, 0})) return;
      builder.complete([&](std::uint64_t slot) { return samples[slot].name; });
      static_cast<void>(builder.commit(kKeepNoResult));
      shards[i] = read_file(path);
    });
    for (const Bytes& shard : shards) CHECK(shard == expected);
  }
}

TEST_CASE("an abandoned shard leaves no files", "[convert][shard]") {
  const auto samples = six_samples();
  const auto framing = framing_for(Format::kTar, samples);
  const TempFolder folder;
  {
    ShardBuilder builder(*framing, folder / "part", folder / "shard", kSlots);
    CHECK(fs::file_size(folder / "part") == framing->shard_bytes(kSlots));  // reserved at once
    CHECK_FALSE(builder.reject(0, {}));
  }
  CHECK(fs::is_empty(folder.path()));
}

TEST_CASE("a builder never writes to a temporary that exists", "[convert][shard]") {
  const auto samples = six_samples();
  const auto framing = framing_for(Format::kTar, samples);
  const TempFolder folder;
  test::write_text(folder / "precious", "text");
  fs::create_symlink(folder / "precious", folder / "part");
  CHECK_THROWS_AS(ShardBuilder(*framing, folder / "part", folder / "shard", 1), IoError);
  CHECK(test::read_text(folder / "precious") == "text");
}

TEST_CASE("the result of a shard is saved before the shard gets its name", "[convert][shard]") {
  const auto samples = six_samples();
  const auto framing = framing_for(Format::kTar, samples);
  const TempFolder folder;
  ShardBuilder builder(*framing, folder / "part", folder / "shard", 1);
  CHECK(fill(builder, *framing, samples, {false}, {0}));
  builder.complete([&](std::uint64_t slot) { return samples[slot].name; });
  bool saved = false;
  const ShardResult result = builder.commit([&](const ShardResult& early) {
    saved = true;
    CHECK(early.entry.samples == 1);
    CHECK_FALSE(fs::exists(folder / "shard"));
  });
  CHECK(saved);
  CHECK(fs::file_size(folder / "shard") == result.entry.bytes);
}

TEST_CASE("a shard that does not fit the disk is refused at once", "[convert][shard]") {
  const TensorSpec spec = test::spec_of(1U << 31, 1U << 31, 1);  // larger than any file may be
  const auto framing = test::make_framing(Format::kHdf5, spec, test::limits_of({{"k", 0}}), {});
  const TempFolder folder;
  CHECK_THAT(test::message_of<IoError>(
                 [&] { ShardBuilder(*framing, folder / "part", folder / "shard", 1); }),
             test::contains("cannot reserve"));
  CHECK_FALSE(fs::exists(folder / "shard"));
}

ShardResult sample_result() {
  ShardResult result;
  result.plan = "crc64:0123456789abcdef";
  result.entry.samples = 3;
  result.entry.bytes = UINT64_MAX;
  result.entry.crc32c = 0xffffffffU;
  result.damaged = 2;
  result.turned = 1;
  result.skipped = {{"a/\xff\xfe\n.jpg", RejectionStage::kDecode, "it is \xc3\xa9 broken"},
                    {"", RejectionStage::kLimit, ""}};
  return result;
}

TEST_CASE("a shard's result survives a round trip through JSON", "[convert][shard][roundtrip]") {
  const ShardResult before = sample_result();
  const ShardResult after = ShardResult::from_json(before.to_json(), "r.json");
  CHECK(after.plan == before.plan);
  CHECK(after.entry.samples == 3);
  CHECK(after.entry.bytes == UINT64_MAX);
  CHECK(after.entry.crc32c == 0xffffffffU);
  CHECK(after.damaged == 2);
  CHECK(after.turned == 1);
  REQUIRE(after.skipped.size() == 2);
  CHECK(after.skipped[0].path == "a/\xff\xfe\n.jpg");  // paths are bytes
  CHECK(after.skipped[0].stage == RejectionStage::kDecode);
  CHECK(after.skipped[0].reason == "it is \xc3\xa9 broken");
  CHECK(after.skipped[1].path.empty());
  CHECK(after.skipped[1].stage == RejectionStage::kLimit);
}

TEST_CASE("a shard's result cut anywhere is corrupt", "[convert][shard][malformed]") {
  std::string whole = sample_result().to_json();
  whole.pop_back();  // the line end
  for (std::size_t size = 0; size < whole.size(); ++size) {
    REQUIRE_THROWS_AS(ShardResult::from_json(whole.substr(0, size), "r.json"), CorruptData);
  }
  for (const char* text : {"{}", "[]", "5"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(ShardResult::from_json(text, "r.json"), CorruptData);
  }
}

TEST_CASE("a shard's result with one wrong value is corrupt", "[convert][shard][malformed]") {
  const auto whole = nlohmann::json::parse(sample_result().to_json());
  const auto with = [&](const char* place, const char* value) {
    auto json = whole;
    json[nlohmann::json::json_pointer(place)] = nlohmann::json::parse(value);
    return json.dump();
  };
  REQUIRE_NOTHROW(ShardResult::from_json(with("/samples", "3"), "r.json"));
  for (const auto& [place, value] :
       std::vector<std::pair<const char*, const char*>>{{"/plan", "5"},
                                                        {"/samples", R"("3")"},
                                                        {"/samples", "1e300"},
                                                        {"/bytes", "-1"},
                                                        {"/crc32c", "4294967296"},
                                                        {"/mtime_ns", "null"},
                                                        {"/damaged", "0.5"},
                                                        {"/turned", "-1"},
                                                        {"/skipped", "[5]"},
                                                        {"/skipped/0", R"({"path": "x"})"},
                                                        {"/skipped/0/path", "[256]"},
                                                        {"/skipped/0/stage", R"("read")"},
                                                        {"/skipped/0/stage", "1"},
                                                        {"/skipped/0/reason", "null"}}) {
    CAPTURE(place, value);
    CHECK_THROWS_AS(ShardResult::from_json(with(place, value), "r.json"), CorruptData);
  }
}

}  // namespace
}  // namespace precache
