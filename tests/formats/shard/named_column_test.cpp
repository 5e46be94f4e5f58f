// SPDX-License-Identifier: Apache-2.0
#include "precache/formats/named_column.hpp"

#include <string>

#include "formats/shard/column_values.hpp"
#include "formats/shard/scan.hpp"
#include "precache/formats/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/shards.hpp"

namespace precache {
namespace {

using test::Bytes;
using test::kFormats;

const std::vector<NamedColumn> kColumns{{"age", ValueType::kFloat32, {}, {}},
                                        {"box", ValueType::kInt64, {4}, {}},
                                        {"tags", ValueType::kUint8, {3}, {"a", "b", "c"}},
                                        {"mask", ValueType::kUint8, {5, 7}, {}},
                                        {"size", ValueType::kInt32, {2}, {}}};

/// A shard with random values in named columns, and its index as a manifest gives it.
struct Shard {
  std::vector<Bytes> values;
  Bytes bytes;
  ShardIndex index;
  std::filesystem::path path = "x.shard";

  Shard(Format format, const std::vector<NamedColumn>& columns,
        const std::vector<std::string>& keys, const std::vector<std::string>& classes = {"cat"}) {
    const TensorSpec spec = test::spec_of(5, 7, 3);
    test::Random random(3);
    std::vector<SampleName> names;
    for (const std::string& key : keys) {
      values.push_back(test::random_bytes(random, values_bytes(columns)));
      names.push_back({key, static_cast<std::int64_t>(names.size())});
    }
    for (std::size_t i = 0; i < names.size(); ++i) names[i].values = values[i];
    const auto framing = test::make_framing(format, spec, test::limits_of(names), classes, columns);
    CHECK(framing->values_bytes() == values_bytes(columns));
    const Bytes assembled = test::assemble(*framing, test::make_samples(names, spec.size_bytes()));
    bytes = test::cut(assembled, assembled.size());
    index.format = format;
    index.bytes = bytes.size();
    index.samples = names.size();
    index.spec = spec;
    index.columns = framing->columns(names.size());
    index.named = std::make_shared<const std::vector<NamedColumn>>(columns);
    CHECK(bytes.size() <= framing->shard_bytes(names.size()));
  }
};

/// Throws if a value of the shard is not what was written.
void check_values(const Shard& shard) {
  const ColumnValues values(shard.index, shard.path);
  for (std::size_t i = 0; i < shard.index.samples; ++i) {
    Bytes all;
    for (std::size_t column = 0; column < shard.index.named->size(); ++column) {
      const auto part = values.named(shard.bytes, column, i);
      all.insert(all.end(), part.begin(), part.end());
    }
    REQUIRE(all == shard.values[i]);
    REQUIRE_NOTHROW(values.verify(shard.bytes, i));
    REQUIRE(values.label(shard.bytes, i) == static_cast<std::int64_t>(i));
  }
}

TEST_CASE("named columns are read back from every format", "[formats][columns][roundtrip]") {
  for (const Format format : kFormats) {
    for (const std::size_t longest : {std::size_t{3}, std::size_t{90}, std::size_t{120}}) {
      CAPTURE(name(format), longest);
      const Shard shard(format, kColumns, {"a", std::string(longest, 'k'), "z"});
      check_values(shard);
      CHECK(ColumnValues(shard.index, shard.path).key(shard.bytes, 1) == std::string(longest, 'k'));
    }
  }
}

TEST_CASE("a shard may have many named columns and class names", "[formats][columns][roundtrip]") {
  std::vector<NamedColumn> columns;
  for (std::size_t i = 0; i < kMostNamedColumns; ++i) {
    columns.push_back({std::string(60, 'c') + std::to_string(i), ValueType::kFloat32, {5}, {}});
  }
  const std::vector<std::string> classes(400, std::string(40, 'n'));
  for (const Format format : kFormats) {
    for (const std::size_t count : {std::size_t{5}, std::size_t{9}, kMostNamedColumns}) {
      CAPTURE(name(format), count);
      check_values(Shard(format, {columns.begin(), columns.begin() + static_cast<long>(count)},
                         {"a", "b", "c"}, classes));
    }
  }
}

TEST_CASE("without named columns records have no bytes for them", "[formats][columns]") {
  for (const Format format : kFormats) {
    const auto limits = test::limits_of({{"key", 3}});
    const auto plain = test::make_framing(format, test::spec_of(5, 7, 3), limits, {"cat"});
    CHECK(plain->values_bytes() == 0);
    CHECK_FALSE(plain->keeps_values());
    CHECK(plain->columns(2).named.empty());
  }
}

TEST_CASE("a scan finds the samples of shards with named columns", "[formats][columns]") {
  for (const Format format : {Format::kTar, Format::kTfrecord}) {
    CAPTURE(name(format));
    const Shard shard(format, kColumns, {"a", "b/c", "z"});
    const ShardIndex index = scan_shard(shard.bytes, shard.path, shard.index.spec, {}, {});
    CHECK(index.samples == 3);
    CHECK(have_same_places(*index.columns, *shard.index.columns));
  }
}

TEST_CASE("any changed byte of a named column is found", "[formats][columns][malformed]") {
  for (const Format format : kFormats) {
    const Shard shard(format, kColumns, {"a", "b", "z"});
    const ColumnValues values(shard.index, shard.path);
    for (std::size_t column = 0; column < kColumns.size(); ++column) {
      const Column& place = shard.index.columns->named[column];
      CAPTURE(name(format), kColumns[column].name);
      Bytes changed = shard.bytes;
      changed[place.base + place.stride] ^= std::byte{1};
      CHECK_THROWS_AS(values.verify(changed, 1), CorruptData);
      CHECK_NOTHROW(values.verify(changed, 0));
    }
  }
}

TEST_CASE("named columns outside of the shard or of another type are corrupt",
          "[formats][columns][malformed]") {
  const auto refuse = [](const auto& change) {
    for (const Format format : kFormats) {
      Shard shard(format, kColumns, {"a", "b", "z"});
      change(shard.index);
      CAPTURE(name(format));
      CHECK_THROWS_AS(ColumnValues(shard.index, shard.path), CorruptData);
    }
  };
  refuse([](ShardIndex& index) { index.columns.edit().named[3].base = index.bytes - 34; });
  refuse([](ShardIndex& index) { index.columns.edit().named[0].base = UINT64_MAX; });
  refuse([](ShardIndex& index) { index.columns.edit().named[1].stride = UINT64_MAX / 2; });
  refuse([](ShardIndex& index) { index.columns.edit().named[1].stride = 31; });
  refuse([](ShardIndex& index) { index.columns.edit().named[2].type = "int64"; });
  refuse([](ShardIndex& index) { index.columns.edit().named[2].type = ""; });
  refuse([](ShardIndex& index) { index.columns.edit().named.pop_back(); });
  refuse([](ShardIndex& index) { index.named.reset(); });
}

TEST_CASE("a shard that ends early has no values there", "[formats][columns][malformed]") {
  for (const Format format : kFormats) {
    const Shard shard(format, kColumns, {"a"});
    const ColumnValues values(shard.index, shard.path);
    for (std::size_t column = 0; column < kColumns.size(); ++column) {
      const std::uint64_t base = shard.index.columns->named[column].base;
      for (const std::uint64_t size : {std::uint64_t{0}, base, base + 1}) {
        if (size >= base + kColumns[column].size_bytes()) continue;
        const Bytes cut = test::cut(shard.bytes, size);
        CHECK_THROWS_AS(values.named(cut, column, 0), CorruptData);
      }
    }
  }
}

TEST_CASE("columns have names and shapes within limits", "[formats][columns]") {
  const auto refuse = [](const NamedColumn& column, const char* telling) {
    CAPTURE(column.name);
    CHECK_THAT(test::message_of<InvalidArgument>([&] { column.validate(); }),
               test::contains(telling));
  };
  for (const NamedColumn& column : kColumns) CHECK_NOTHROW(column.validate());
  CHECK_NOTHROW(NamedColumn{"x", ValueType::kFloat32, {4096}, {}}.validate());
  CHECK_NOTHROW(NamedColumn{std::string(64, 'x'), ValueType::kInt64, {1}, {}}.validate());
  for (const std::string name : {"", "Age", "a b", "a.b", "a-b", "\xc3\xa4", "a\n"}) {
    refuse({name, ValueType::kFloat32, {}, {}}, "name of a column");
  }
  refuse({std::string(65, 'x'), ValueType::kFloat32, {}, {}}, "name of a column");
  for (const char* name : {"image", "label", "key", "crc32c", "images", "labels", "keys", "pad"}) {
    refuse({name, ValueType::kFloat32, {}, {}}, "another meaning");
  }
  refuse({"x", ValueType::kFloat32, {0}, {}}, "from 1 to 4096");
  refuse({"x", ValueType::kFloat32, {4097}, {}}, "from 1 to 4096");
  refuse({"x", ValueType::kFloat32, {2, 2}, {}}, "mask of uint8");
  refuse({"x", ValueType::kUint8, {2, 2, 2}, {}}, "mask of uint8");
  refuse({"x", ValueType::kUint8, {2, 16385}, {}}, "16384");
  refuse({"x", ValueType::kUint8, {2}, {"a"}}, "1 names");
  refuse({"x", ValueType::kInt64, {1}, {"a"}}, "1 names");
  refuse({"x", ValueType::kUint8, {2}, {"a", ""}}, "0 bytes");
  CHECK(kColumns[3].text() == "mask uint8[5,7]");
  CHECK(kColumns[0].text() == "age float32");
  CHECK_THROWS_AS(validate({kColumns[0], kColumns[0]}), InvalidArgument);
}

}  // namespace
}  // namespace precache
