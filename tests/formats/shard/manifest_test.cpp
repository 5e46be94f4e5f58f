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
  shard.columns = ShardColumns{{640, 1536, "float16"},
                               {1024, 1536, "decimal"},
                               {0, 1536, "ustar"},
                               {},
                               {{700, 1536, "float32"}, {800, 1536, "uint8"}}};
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
  split.columns = {{"age", ValueType::kFloat32, {}, {}},
                   {"tags", ValueType::kUint8, {2}, {"indoor", "night"}}};
  split.shards = {shard, shard};
  split.shards[1].file = "train-000001.tar";
  split.shards[1].columns.edit().label.base = 1030;
  split.shards[1].columns.edit().named[1].base = 810;
  SplitEntry empty;
  empty.shards = {{"val-000000.tar", 0, 1024, 0, shard.columns}};
  empty.shards[0].columns.edit().named.clear();
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
  CHECK(split.columns == before.splits.at("train").columns);
  CHECK(split.shards[0].columns == before.splits.at("train").shards[0].columns);
  CHECK(split.shards[1].columns == before.splits.at("train").shards[1].columns);
  CHECK(after.splits.at("val").shards.size() == 1);
  CHECK(after.to_json() == before.to_json());
}

TEST_CASE("a manifest has the specified keys", "[formats][manifest]") {
  const Json json = Json::parse(small_manifest().to_json());
  CHECK(json.at("version") == 2);
  CHECK(json.at("format") == "tar");
  CHECK(json.at("spec") == Json::parse(R"({"dtype":"float16","shape":[2,3,1],"layout":"hwc"})"));
  CHECK(json.at("classes").size() == 3);
  CHECK(json.at("recipe").is_object());
  const Json& shard = json.at(Pointer("/splits/train/shards/0"));
  CHECK(shard.at("crc32c") == "00c0ffee");
  CHECK_FALSE(shard.contains("columns"));
  const Json& columns = json.at(Pointer("/splits/train/columns"));
  CHECK(columns.at("label") == Json::parse(R"({"base":1024,"stride":1536,"type":"decimal"})"));
  CHECK(columns.at("age") ==
        Json::parse(R"({"base":700,"stride":1536,"type":"float32","shape":[]})"));
  CHECK(columns.at("tags").at("names") == Json::parse(R"(["indoor","night"])"));
  CHECK(json.at(Pointer("/splits/train/shards/1/columns")) ==
        Json::parse(R"({"label":{"base":1030},"tags":{"base":810}})"));
  CHECK(small_manifest().to_json().ends_with("}\n"));
}

/// The same dataset as version 1 describes it: with all columns in each shard.
Json as_version_1(const Manifest& manifest) {
  Json json = Json::parse(manifest.to_json());
  json["version"] = 1;
  for (auto& split : json.at("splits")) {
    const Json columns = split.at("columns");
    split.erase("columns");
    for (auto& shard : split.at("shards")) {
      Json own = columns;
      own.update(shard.value("columns", Json::object()), true);
      shard["columns"] = own;
    }
  }
  return json;
}

TEST_CASE("a manifest of version 1 is read and becomes one of version 2", "[formats][manifest]") {
  Manifest before = small_manifest();
  SplitEntry& split = before.splits.at("train");
  split.columns.clear();
  for (ShardEntry& shard : split.shards) shard.columns.edit().named.clear();
  split.shards[1].columns.edit().crc32c = {1, 4, "uint32"};
  const Json old = as_version_1(before);
  CHECK(old.at(Pointer("/splits/train/shards/1/columns/label/base")) == 1030);
  const Manifest after = parse(old);
  CHECK(after.splits.at("train").shards == split.shards);
  CHECK(after.splits.at("train").columns.empty());
  CHECK(after.to_json() == before.to_json());
  for (const char* column : {"image", "label", "key"}) {
    Json json = old;
    json[Pointer("/splits/train/shards/1/columns")].erase(column);
    CAPTURE(column);
    CHECK_THROWS_AS(parse(json), CorruptData);
  }
}

TEST_CASE("equal shards of a manifest share their columns", "[formats][manifest]") {
  Manifest manifest = small_manifest();
  SplitEntry& split = manifest.splits.at("train");
  const ShardEntry first = split.shards[0];
  split.shards.assign(100, first);
  split.samples = 500;
  const std::string text = manifest.to_json();
  CHECK(text.size() < 3000 + 100 * 110);
  for (const Manifest& after : {Manifest::from_json(text, kPath), parse(as_version_1([&] {
                                  Manifest plain = manifest;
                                  plain.splits.at("train").columns.clear();
                                  for (ShardEntry& shard : plain.splits.at("train").shards) {
                                    shard.columns.edit().named.clear();
                                  }
                                  return plain;
                                }()))}) {
    const auto& shards = after.splits.at("train").shards;
    REQUIRE(shards.size() == 100);
    CHECK(&*shards[0].columns == &*shards[99].columns);
  }
}

TEST_CASE("a manifest with two columns of one name, or too many, is corrupt",
          "[formats][manifest][malformed]") {
  Manifest manifest = small_manifest();
  SplitEntry& split = manifest.splits.at("train");
  for (ShardEntry& shard : split.shards) {
    shard.columns.edit().named.resize(kMostNamedColumns + 1, {700, 1536, "float32"});
  }
  split.columns.clear();
  for (std::size_t i = 0; i <= kMostNamedColumns; ++i) {
    split.columns.push_back({"c" + std::to_string(i), ValueType::kFloat32, {}, {}});
  }
  CHECK_THROWS_AS(Manifest::from_json(manifest.to_json(), kPath), CorruptData);
  for (ShardEntry& shard : split.shards) shard.columns.edit().named.pop_back();
  split.columns.pop_back();
  CHECK(Manifest::from_json(manifest.to_json(), kPath).splits.at("train").columns == split.columns);
}

TEST_CASE("a manifest with an object of very many members is refused at once",
          "[formats][manifest][malformed]") {
  std::string text = R"({"version":2,"recipe":{)";
  for (int i = 0; i < 5000; ++i) text += "\"k" + std::to_string(i) + "\":[1,2],";
  text += R"("last":1}})";
  CHECK_THAT(
      test::message_of<CorruptData>([&] { static_cast<void>(Manifest::from_json(text, kPath)); }),
      test::contains("members"));
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
       {"", "/spec", "/splits/train", "/splits/train/shards/0", "/splits/train/columns",
        "/splits/train/columns/image", "/splits/train/columns/key", "/splits/train/columns/age"}) {
    for (const auto& item : whole.at(Pointer(parent)).items()) {
      // Optional, or a named column, which may be left out.
      if (item.key() == "names" || (parent.empty() && item.key() == "crc32c") ||
          (parent == "/splits/train/columns" && item.key() == "age")) {
        continue;
      }
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
  const std::string columns = "/splits/train/columns";
  const std::string columns_age = R"({"base":1,"stride":1,"type":"float32","shape":[]})";
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
                                                        {shard + "/columns", "{\"image\":640}"},
                                                        {shard + "/columns", "{\"other\":{}}"},
                                                        {columns, "[]"},
                                                        {columns + "/image", "640"},
                                                        {columns + "/image/base", "\"640\""},
                                                        {columns + "/label/stride", "null"},
                                                        {columns + "/key/type", "3"},
                                                        {columns + "/Age", columns_age},
                                                        {columns + "/pad", columns_age},
                                                        {columns + "/age", "[]"},
                                                        {columns + "/age/type", "\"float64\""},
                                                        {columns + "/age/shape", "5"},
                                                        {columns + "/age/shape", "[0]"},
                                                        {columns + "/age/shape", "[4097]"},
                                                        {columns + "/age/shape", "[-1]"},
                                                        {columns + "/age/shape", "[4294967297]"},
                                                        {columns + "/age/shape", "[2,2]"},
                                                        {columns + "/tags/shape", "[20000,2]"},
                                                        {columns + "/tags/shape", "[2,2,2]"},
                                                        {columns + "/tags/shape", "[3]"},
                                                        {columns + "/tags/names", "[\"a\",2]"},
                                                        {columns + "/tags/names", "[\"a\",\"\"]"},
                                                        {columns + "/tags/names", "5"}}) {
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
  for (const char* version : {"0", "3", "1000", "18446744073709551615"}) {
    CHECK_THAT(
        test::message_of<Unsupported>([&] { static_cast<void>(parse(with("/version", version))); }),
        test::contains(version));
  }
  // The other contents of a newer version are not read.
  CHECK_THROWS_AS(Manifest::from_json(R"({"version":3,"all":"new"})", kPath), Unsupported);
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
           {"/splits/train/columns/image/base", "640.5"}}) {
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
