// SPDX-License-Identifier: Apache-2.0
#include "precache/formats/manifest.hpp"

#include <nlohmann/json.hpp>

#include "formats/bytes/crc32c.hpp"
#include "formats/os/file.hpp"
#include "formats/shard/encoded_manifest.hpp"
#include "precache/formats/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/child.hpp"
#include "tests/support/temp_folder.hpp"

namespace precache {
namespace {

using Json = nlohmann::ordered_json;
using Pointer = Json::json_pointer;

const std::filesystem::path kPath = "some/dataset.json";

Manifest small_manifest() {
  Manifest manifest;
  manifest.format = Format::kTar;
  manifest.spec = {DType::kFloat16, Layout::kHwc, 2, 3, 1};
  manifest.classes = {"cat", "d\"o\\g", "\xe7\x8c\xab"};
  manifest.recipe = StoredRecipe::parse(R"({"size":[2,3],"nested":{"a":[1,null,true]}})");
  ShardEntry shard{"train-000000.tar", 5, 7680, 0x00c0ffee, {}};
  shard.columns = {{640, 1536, "float16"}, {1024, 1536, "decimal"}, {0, 1536, "ustar"}};
  SplitEntry split;
  split.samples = 10;
  split.skipped = 2;
  split.max_pixels = 1'000'000;
  split.seed = UINT64_MAX;
  split.shuffled = false;
  split.source_fingerprint = "crc64:0123456789abcdef";
  split.names = NameLimits();
  split.names->include("dogs/1", -1);
  split.names->include("a", 300);
  split.shards = {shard, shard};
  split.shards[1].file = "train-000001.tar";
  SplitEntry empty;
  empty.shards = {{"val-000000.tar", 0, 1024, 0, shard.columns}};
  manifest.splits = {{"train", split}, {"val", empty}};
  return manifest;
}

Manifest parse(const Json& json) { return Manifest::from_json(json.dump(), kPath); }

/// A valid manifest with one value replaced by this JSON text.
Json with(const std::string& pointer, const std::string& value) {
  Json json = Json::parse(small_manifest().to_json());
  json[Pointer(pointer)] = Json::parse(value);
  return json;
}

TEST_CASE("a manifest survives the way to JSON and back", "[formats][manifest][roundtrip]") {
  const Manifest before = small_manifest();
  const Manifest after = Manifest::from_json(before.to_json(), kPath);
  CHECK(after.format == before.format);
  CHECK(after.spec == before.spec);
  CHECK(after.classes == before.classes);
  CHECK(after.recipe.to_json() == before.recipe.to_json());
  REQUIRE(after.splits.size() == 2);
  const SplitEntry& split = after.splits.at("train");
  CHECK(split.samples == 10);
  CHECK(split.skipped == 2);
  CHECK(split.max_pixels == 1'000'000);
  CHECK(split.seed == UINT64_MAX);
  CHECK_FALSE(split.shuffled);
  CHECK(split.source_fingerprint == "crc64:0123456789abcdef");
  CHECK(split.names == before.splits.at("train").names);
  CHECK_FALSE(after.splits.at("val").names);
  REQUIRE(split.shards.size() == 2);
  CHECK(split.shards[1].file == "train-000001.tar");
  CHECK(split.shards[0].samples == 5);
  CHECK(split.shards[0].bytes == 7680);
  CHECK(split.shards[0].crc32c == 0x00c0ffee);
  CHECK(split.shards[0].columns == before.splits.at("train").shards[0].columns);
  CHECK(after.splits.at("val").shards.size() == 1);
  CHECK(after.to_json() == before.to_json());
}

TEST_CASE("a manifest has the specified keys", "[formats][manifest]") {
  const Json json = Json::parse(small_manifest().to_json());
  CHECK(json.at("version") == 1);
  CHECK(json.at("format") == "tar");
  CHECK(json.at("spec") == Json::parse(R"({"dtype":"float16","shape":[2,3,1],"layout":"hwc"})"));
  CHECK(json.at("classes").size() == 3);
  CHECK(json.at("recipe").is_object());
  const Json& shard = json.at(Pointer("/splits/train/shards/0"));
  CHECK(shard.at("crc32c") == "00c0ffee");
  CHECK(shard.at("columns").at("label") ==
        Json::parse(R"({"base":1024,"stride":1536,"type":"decimal"})"));
  CHECK(small_manifest().to_json().ends_with("}\n"));
}

TEST_CASE("a manifest in either layout gives height and width", "[formats][manifest]") {
  Manifest manifest = small_manifest();
  manifest.spec = {DType::kUint8, Layout::kChw, 7, 9, 3};
  CHECK(Json::parse(manifest.to_json()).at("spec").at("shape") == Json::parse("[3,7,9]"));
  CHECK(Manifest::from_json(manifest.to_json(), kPath).spec == manifest.spec);
}

TEST_CASE("a manifest is read from a file, and errors name the file", "[formats][manifest]") {
  const test::TempFolder folder;
  const auto path = folder / kManifestName;
  CHECK_THROWS_AS(Manifest::read(path), IoError);
  test::write_text(path, small_manifest().to_json());
  CHECK(Manifest::read(path).classes.size() == 3);
  test::write_text(path, "{}");
  try {
    static_cast<void>(Manifest::read(path));
    FAIL("no error");
  } catch (const CorruptData& error) {
    CHECK(error.path() == path);
    CHECK_THAT(error.what(), test::contains("version"));
  }
}

TEST_CASE("a manifest truncated anywhere is corrupt and does not crash",
          "[formats][manifest][malformed]") {
  const std::string whole = Json::parse(small_manifest().to_json()).dump();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    const std::vector<char> exact(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    REQUIRE_THROWS_AS(Manifest::from_json({exact.data(), exact.size()}, kPath), CorruptData);
  }
}

TEST_CASE("a manifest with any byte replaced is read or refused with a typed error",
          "[formats][manifest][malformed]") {
  const std::string whole = Json::parse(small_manifest().to_json()).dump();
  std::size_t refused = 0;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const char byte : {'\0', '"', '{', ']', '-', 'e', '9', '\xff'}) {
      std::string text = whole;
      text[at] = byte;
      CAPTURE(at, static_cast<int>(byte));
      try {
        static_cast<void>(Manifest::from_json(text, kPath));
      } catch (const Error&) {
        ++refused;
      }
    }
  }
  CHECK(refused > whole.size() * 4);
}

TEST_CASE("a manifest that is not a JSON object is corrupt", "[formats][manifest][malformed]") {
  for (const char* text :
       {"", " ", "null", "1", "[]", "\"version\"", "{", "{}x", "{\"version\":1}}", "\xef\xbb\xbf",
        "{\"version\": 01}", "{'version': 1}"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(Manifest::from_json(text, kPath), CorruptData);
  }
}

TEST_CASE("a manifest without one of its keys is corrupt", "[formats][manifest][malformed]") {
  const Json whole = Json::parse(small_manifest().to_json());
  const auto check_without = [&](const std::string& parent, const std::string& key) {
    Json json = whole;
    json[Pointer(parent)].erase(key);
    CAPTURE(parent, key);
    CHECK_THAT(test::message_of<CorruptData>([&] { static_cast<void>(parse(json)); }),
               test::contains(key));
  };
  for (const std::string parent :
       {"", "/spec", "/splits/train", "/splits/train/shards/1", "/splits/train/shards/1/columns",
        "/splits/train/shards/1/columns/image", "/splits/train/shards/1/columns/key"}) {
    for (const auto& item : whole.at(Pointer(parent)).items()) {
      if (item.key() == "names" || (parent.empty() && item.key() == "crc32c"))
        continue;  // optional
      check_without(parent, item.key());
    }
  }
}

TEST_CASE("a manifest without splits or shards is corrupt", "[formats][manifest][malformed]") {
  const auto message = [](const std::string& pointer, const std::string& value) {
    return test::message_of<CorruptData>([&] { static_cast<void>(parse(with(pointer, value))); });
  };
  CHECK_THAT(message("/splits", "{}"), test::contains("no splits"));
  CHECK_THAT(message("/splits/val/shards", "[]"), test::contains("no shards"));
}

TEST_CASE("a manifest has a CRC of itself", "[formats][manifest]") {
  const std::string whole = small_manifest().to_json();
  // By its definition in docs/formats/manifest.md.
  const std::size_t digits = whole.size() - std::string_view("00000000\"\n}\n").size();
  std::string zeroed = whole;
  zeroed.replace(digits, 8, "00000000");
  CHECK(whole.substr(digits, 8) == crc32c::text(crc32c::value(as_bytes(zeroed))));
  CHECK(Json::parse(whole).at("crc32c") == whole.substr(digits, 8));
  CHECK(has_right_own_crc(whole) == true);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] ^= 1;
    CAPTURE(at);
    REQUIRE(has_right_own_crc(changed) != true);
  }
  CHECK(has_right_own_crc(whole + " ") == false);
  CHECK(has_right_own_crc("{\"version\": 1}\n") == std::nullopt);  // of an earlier version
}

TEST_CASE("a manifest with values of a wrong type is corrupt", "[formats][manifest][malformed]") {
  const std::string shard = "/splits/train/shards/0";
  for (const auto& [pointer, value] :
       std::vector<std::pair<std::string, std::string>>{{"/version", "\"1\""},
                                                        {"/version", "null"},
                                                        {"/version", "[1]"},
                                                        {"/format", "1"},
                                                        {"/format", "null"},
                                                        {"/spec", "[]"},
                                                        {"/spec/dtype", "8"},
                                                        {"/spec/dtype", "\"float64\""},
                                                        {"/spec/layout", "\"nchw\""},
                                                        {"/spec/shape", "[2,3]"},
                                                        {"/spec/shape", "[1,2,3,1]"},
                                                        {"/spec/shape", "\"2x3x1\""},
                                                        {"/spec/shape", "[2,\"3\",1]"},
                                                        {"/spec/shape", "[2,[3],1]"},
                                                        {"/classes", "{\"a\":1}"},
                                                        {"/classes", "[\"a\",5]"},
                                                        {"/classes", "\"cat\""},
                                                        {"/splits", "5"},
                                                        {"/splits/train", "[]"},
                                                        {"/splits/train/samples", "\"5\""},
                                                        {"/splits/train/seed", "null"},
                                                        {"/splits/train/shuffled", "1"},
                                                        {"/splits/train/shuffled", "\"true\""},
                                                        {"/splits/train/source_fingerprint", "77"},
                                                        {"/splits/train/shards", "5"},
                                                        {"/splits/train/shards", "[5]"},
                                                        {"/splits/train/shards", "[[]]"},
                                                        {shard + "/samples", "{}"},
                                                        {shard + "/bytes", "true"},
                                                        {shard + "/crc32c", "3221225472"},
                                                        {shard + "/columns", "[]"},
                                                        {shard + "/columns/image", "640"},
                                                        {shard + "/columns/image/base", "\"640\""},
                                                        {shard + "/columns/label/stride", "null"},
                                                        {shard + "/columns/key/type", "3"}}) {
    CAPTURE(pointer, value);
    CHECK_THROWS_AS(parse(with(pointer, value)), CorruptData);
  }
}

TEST_CASE("a manifest with a malformed CRC is corrupt", "[formats][manifest][malformed]") {
  for (const char* crc : {"", "c0ffee", "0c0ffee", "000c0ffee", "00c0ffeg", " 0c0ffee", "0x00c0ff",
                          "-0c0ffee", "+0c0ffee", "00c0ffe ", "00c0 fee"}) {
    CAPTURE(crc);
    const Json json = with("/splits/train/shards/0/crc32c", Json(crc).dump());
    CHECK_THAT(test::message_of<CorruptData>([&] { static_cast<void>(parse(json)); }),
               test::contains("CRC"));
  }
}

TEST_CASE("a manifest names only files next to itself", "[formats][manifest][malformed]") {
  for (const char* file : {"", "/etc/passwd", "../train-000000.tar", "a/b", "a/", "./a"}) {
    CAPTURE(file);
    CHECK_THROWS_AS(parse(with("/splits/train/shards/0/file", Json(file).dump())), CorruptData);
  }
  CHECK(parse(with("/splits/train/shards/0/file", "\"a..b\"")).splits.at("train").shards[0].file ==
        "a..b");
}

TEST_CASE("a manifest does not name the folder above as a shard",
          "[formats][manifest][malformed]") {
  for (const char* file : {R"(".")", R"("..")", R"("a\u0000b")"}) {
    CAPTURE(file);
    CHECK_THROWS_AS(parse(with("/splits/train/shards/0/file", file)), CorruptData);
  }
}

TEST_CASE("a manifest of a newer version is unsupported", "[formats][manifest][malformed]") {
  for (const char* version : {"2", "1000", "18446744073709551615"}) {
    CHECK_THAT(
        test::message_of<Unsupported>([&] { static_cast<void>(parse(with("/version", version))); }),
        test::contains(version));
  }
  // The other contents of a newer version are not read.
  CHECK_THROWS_AS(Manifest::from_json(R"({"version":2,"all":"new"})", kPath), Unsupported);
}

TEST_CASE("a manifest with keys that this version does not know is read", "[formats][manifest]") {
  CHECK(parse(with("/splits/train/later", "{\"a\":1}")).splits.size() == 2);
}

TEST_CASE("a manifest with numbers that cannot be sizes is corrupt",
          "[formats][manifest][malformed]") {
  for (const auto& [pointer, value] : std::vector<std::pair<std::string, std::string>>{
           {"/version", "1.5"},
           {"/version", "-1"},
           {"/spec/shape", "[2,3,-1]"},
           {"/spec/shape", "[2,4294967299,1]"},  // 2^32 + 3
           {"/spec/shape", "[2,3.7,1]"},
           {"/spec/shape", "[2,true,1]"},
           {"/spec/shape", "[0,3,1]"},
           {"/spec/shape", "[4294967295,4294967295,4294967295]"},
           {"/splits/train/samples", "-1"},
           {"/splits/train/samples", "9"},
           {"/splits/train/shards/0/samples", "6"},
           {"/splits/train/shards/0/samples", "18446744073709551615"},
           {"/splits/train/samples", "1.5"},
           {"/splits/train/samples", "1e300"},
           {"/splits/train/shards/0/bytes", "-7680"},
           {"/splits/train/shards/0/columns/image/base", "640.5"}}) {
    CAPTURE(pointer, value);
    CHECK_THROWS_AS(parse(with(pointer, value)), CorruptData);
  }
}

TEST_CASE("a manifest with lists and objects exchanged is corrupt",
          "[formats][manifest][malformed]") {
  for (const auto& [pointer, value] :
       std::vector<std::pair<std::string, std::string>>{{"/splits", "null"},
                                                        {"/splits", "[]"},
                                                        {"/splits/train/shards", "null"},
                                                        {"/splits/train/shards", "{}"},
                                                        {"/recipe", "5"},
                                                        {"/recipe", "null"},
                                                        {"/format", "\"zip\""}}) {
    CAPTURE(pointer, value);
    CHECK_THROWS_AS(parse(with(pointer, value)), CorruptData);
  }
}

TEST_CASE("a manifest of endless brackets is refused without a crash",
          "[formats][manifest][malformed]") {
  const std::size_t depth = 1'000'000;
  const std::string recipe = std::string(depth, '[') + std::string(depth, ']');
  Json json = Json::parse(small_manifest().to_json());
  json["recipe"] = "HERE";
  std::string text = json.dump();
  text.replace(text.find("\"HERE\""), 6, recipe);
  CHECK(test::ends_normally([&] {
    try {
      static_cast<void>(Manifest::from_json(text, kPath));
    } catch (const Error&) {
    }
  }));
}

TEST_CASE("a manifest with impossible name limits is rejected", "[formats][manifest][malformed]") {
  const std::string names = "/splits/train/names";
  for (const auto& [pointer, value] :
       std::vector<std::pair<std::string, std::string>>{{"", "5"},
                                                        {"/longest_key", "0"},
                                                        {"/longest_key", "1048577"},
                                                        {"/longest_key", "-1"},
                                                        {"/smallest_label", "0.5"},
                                                        {"/largest_label", "9223372036854775808"},
                                                        {"/fit_ustar", "1"}}) {
    CAPTURE(pointer, value);
    CHECK_THROWS_AS(parse(with(names + pointer, value)), CorruptData);
  }
  CHECK_NOTHROW(parse(with(names + "/smallest_label", "-9223372036854775808")));
}

}  // namespace
}  // namespace precache
