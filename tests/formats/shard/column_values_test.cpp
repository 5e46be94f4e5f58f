// SPDX-License-Identifier: Apache-2.0
#include "formats/shard/column_values.hpp"

#include <algorithm>
#include <functional>
#include <limits>

#include "formats/shard/scan.hpp"
#include "precache/formats/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/shards.hpp"
#include "tests/support/tar_writer.hpp"

namespace precache {
namespace {

using test::Bytes;
using test::kFormats;
using test::spec_of;

constexpr std::int64_t kSmallest = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();

/// A shard in memory of exactly its size, with the index that its framing gives.
struct Shard {
  std::vector<test::Sample> samples;
  Bytes bytes;
  ShardIndex index;

  Shard(Format format, std::vector<SampleName> names, const TensorSpec& spec)
      : samples(test::make_samples(names, spec.size_bytes())) {
    const auto framing = test::make_framing(format, spec, test::limits_of(names), {"cat", "dog"});
    const Bytes assembled = test::assemble(*framing, samples);
    bytes = test::cut(assembled, assembled.size());
    index.format = format;
    index.bytes = bytes.size();
    index.samples = samples.size();
    index.spec = spec;
    index.columns = framing->columns(samples.size());
  }
  [[nodiscard]] ColumnValues values() const { return {index, path}; }
  std::filesystem::path path = "x.shard";
};

Shard small_shard(Format format) {
  return {format, {{"a/b", 3}, {"c", -1}, {"long/" + std::string(40, 'k'), 999}}, spec_of(2, 3, 3)};
}

void check_all(const Shard& shard) {
  const ColumnValues values = shard.values();
  for (std::size_t i = 0; i < shard.samples.size(); ++i) {
    CAPTURE(i, shard.samples[i].name.key, shard.samples[i].name.label);
    const auto [offset, bytes] = values.payload(i);
    REQUIRE(offset + bytes <= shard.bytes.size());
    CHECK(
        std::ranges::equal(std::span(shard.bytes).subspan(offset, bytes), shard.samples[i].tensor));
    CHECK(values.label(shard.bytes, i) == shard.samples[i].name.label);
    CHECK(values.key(shard.bytes, i) == shard.samples[i].name.key);
    CHECK_NOTHROW(values.verify(shard.bytes, i));
  }
}

TEST_CASE("framed values are read back", "[formats][columns][roundtrip]") {
  std::string unicode;
  for (int i = 0; i < 40; ++i) unicode += "\u00e4\u6f22\U0001f600";
  const std::vector<std::vector<std::string>> key_sets{
      {"a"},
      {"a", "bb/cc", "d e/f"},
      {"a", std::string(60, 'p') + "/" + std::string(60, 'n')},  // name and prefix of ustar
      {std::string(96, 'n')},        // the longest that fits the name field
      {"a", std::string(120, 'n')},  // pax
      {"a", std::string(200, 'p') + "/" + std::string(100, 'n')},   // pax
      {std::string(130, 'x') + "/" + std::string(2000, 'y'), "b"},  // pax of several blocks
      {"\u00e4/\u6f22\u5b57", "\U0001f600"},
      {unicode, "dot.ted/folder/base"}};
  for (const Format format : kFormats) {
    for (const auto& keys : key_sets) {
      for (const auto& labels :
           {std::vector<std::int64_t>{0}, std::vector<std::int64_t>{-1},
            std::vector<std::int64_t>{0, 127, 128, 999, -1},
            std::vector<std::int64_t>{kSmallest, kLargest, 0, -1, 999, kSmallest + 1}}) {
        std::vector<SampleName> names;
        for (const auto& key : keys) {
          for (const auto label : labels) {
            names.push_back({key + "~" + std::to_string(names.size()), label});
          }
        }
        CAPTURE(name(format), keys.back().size());
        check_all(Shard(format, names, spec_of(2, 3, 3)));
      }
    }
  }
}

TEST_CASE("tensors of every type and size are found", "[formats][columns][roundtrip]") {
  for (const Format format : kFormats) {
    for (const DType dtype : {DType::kUint8, DType::kBfloat16, DType::kFloat32}) {
      for (const std::uint32_t width : {1U, 63U, 500U, 5000U}) {
        CAPTURE(name(format), name(dtype), width);
        check_all(Shard(format, {{"a", 1}, {"b", 2}, {"c", 3}}, spec_of(1, width, 1, dtype)));
      }
    }
  }
}

TEST_CASE("absent labels are -1 and absent keys are empty", "[formats][columns]") {
  for (const Format format : kFormats) {
    Shard shard = small_shard(format);
    shard.index.columns.edit().label = {};
    shard.index.columns.edit().key = {};
    CHECK(shard.values().label(shard.bytes, 2) == -1);
    CHECK(shard.values().key(shard.bytes, 2).empty());
    // The place of an absent column does not matter.
    shard.index.columns.edit().label.base = UINT64_MAX;
    shard.index.columns.edit().key = {shard.bytes.size(), 100, ""};
    CHECK(shard.values().label(shard.bytes, 2) == -1);
    CHECK(shard.values().key(shard.bytes, 2).empty());
  }
}

TEST_CASE("a decimal label may have leading zeros and a newline", "[formats][columns]") {
  Shard shard = small_shard(Format::kTar);
  const Column& column = shard.index.columns->label;
  const auto label_of = [&](std::string_view text) {
    const Bytes bytes = test::bytes_of(text);
    std::copy(bytes.begin(), bytes.end(),
              shard.bytes.begin() + static_cast<std::ptrdiff_t>(column.base + column.stride));
    return shard.values().label(shard.bytes, 1);
  };
  CHECK(label_of("17\n") == 17);
  CHECK(label_of("17 ") == 17);
  CHECK(label_of(std::string(30, '0') + "5") == 5);
  for (const char* text : {"x", "17x", "", " 17", "99999999999999999999"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(label_of(text + std::string(40, '\0')), CorruptData);
  }
}

TEST_CASE("a table gives values that no column can describe", "[formats][columns]") {
  ShardIndex index;
  index.format = Format::kHdf5;
  index.bytes = 100;
  index.samples = 2;
  index.keys = "onetwo!";
  index.places = {{0, 10, 20, 5, 0, 3}, {30, 40, 60, -7, 3, 4}};
  const std::filesystem::path path = "x.h5";
  const ColumnValues values(index, path);
  const Bytes file(100);
  CHECK(values.payload(0).offset == 10);
  CHECK(values.payload(1).bytes == 60);
  CHECK(values.label(file, 0) == 5);
  CHECK(values.label(file, 1) == -7);
  CHECK(values.key(file, 0) == "one");
  CHECK(values.key(file, 1) == "two!");
}

/// The bytes of a record in which a flipped bit is not detected.
std::vector<std::size_t> undetected(const Shard& shard, std::size_t record, std::size_t begin,
                                    std::size_t end) {
  const ColumnValues values = shard.values();
  std::vector<std::size_t> missed;
  for (std::size_t at = begin; at < end; ++at) {
    for (const unsigned bit : {0U, 3U, 7U}) {
      Bytes damaged = shard.bytes;
      damaged[at] ^= std::byte{1} << bit;
      try {
        values.verify(damaged, record);
        missed.push_back(at);
      } catch (const CorruptData& error) {
        // The error gives the offset, at least that of the part with the checksum.
        CHECK(error.path() == "x.shard");
        CHECK(error.offset() <= at);
        CHECK(error.offset() >= record * shard.index.columns->image.stride);
      }
    }
  }
  return missed;
}

TEST_CASE("verify finds any damaged byte of a TFRecord",
          "[formats][columns][tfrecord][malformed]") {
  const Shard shard = small_shard(Format::kTfrecord);
  const std::size_t stride = shard.index.columns->image.stride;
  CHECK(undetected(shard, 1, stride, 2 * stride).empty());
  // And no damage of other records.
  Bytes damaged = shard.bytes;
  damaged[stride - 1] ^= std::byte{1};
  damaged[2 * stride] ^= std::byte{1};
  CHECK_NOTHROW(shard.values().verify(damaged, 1));
  CHECK_THROWS_AS(shard.values().verify(damaged, 0), CorruptData);
  CHECK_THROWS_AS(shard.values().verify(damaged, 2), CorruptData);
}

TEST_CASE("verify finds any damaged byte of a tar record's headers",
          "[formats][columns][tar][malformed]") {
  // The last two of the eight bytes of a checksum only terminate it.
  const auto matters = [](std::size_t missed, std::size_t header) {
    return missed < header + 148 + 6 || missed >= header + 148 + 8;
  };
  for (const std::size_t key_bytes : {std::size_t{10}, std::size_t{300}}) {
    const Shard shard(Format::kTar, {{"a", 1}, {std::string(key_bytes, 'k'), 2}, {"b", 3}},
                      spec_of(2, 3, 3));
    const std::size_t record = shard.index.columns->image.stride;
    const std::size_t image = record + shard.index.columns->image.base - 128 - 512;
    const std::size_t label = record + shard.index.columns->label.base - 512;
    std::vector<std::size_t> headers{image, label};
    if (key_bytes > 100) {  // each after a pax header
      CHECK(shard.index.columns->key.type == "pax");
      headers.push_back(record);
      headers.push_back(label - (image - record));
    }
    for (const std::size_t header : headers) {
      CAPTURE(key_bytes, header - record);
      for (const std::size_t missed : undetected(shard, 1, header, header + 512)) {
        CAPTURE(missed - header);
        CHECK_FALSE(matters(missed, header));
      }
    }
  }
}

TEST_CASE("verify accepts an empty file at the end of a tar", "[formats][columns][tar]") {
  const Bytes file =
      test::bytes_of(test::tar_entry("a.jpg", "x") + test::tar_entry("b.jpg", "") + test::kTarEnd);
  const ShardIndex index = scan_shard(file, "a.tar");
  const std::filesystem::path path = "a.tar";
  const ColumnValues values(index, path);
  REQUIRE(index.samples == 2);
  CHECK_NOTHROW(values.verify(file, 0));
  CHECK_NOTHROW(values.verify(file, 1));
}

TEST_CASE("a key that cannot be read is an error with an offset",
          "[formats][columns][tar][malformed]") {
  Shard shard = small_shard(Format::kTar);
  const std::size_t record = 2 * shard.index.columns->key.stride;
  shard.bytes[record] ^= std::byte{1};
  CHECK_NOTHROW((void)shard.values().key(shard.bytes, 1));
  try {
    (void)shard.values().key(shard.bytes, 2);
    FAIL_CHECK("no error was thrown");
  } catch (const CorruptData& error) {
    CHECK(error.offset() == record);
    CHECK_THAT(error.what(), test::contains("checksum"));
  }
}

TEST_CASE("columns that run past the end or have unknown types are refused",
          "[formats][columns][malformed]") {
  using Change = std::function<void(Column&)>;
  const std::vector<std::pair<std::string, Change>> changes{
      {"base at the end", [](Column& column) { column.base = UINT64_MAX; }},
      {"base near the end", [](Column& column) { column.base = UINT64_MAX - 20; }},
      {"base past the end of the file", [](Column& column) { column.base = 1 << 20; }},
      {"stride that overflows", [](Column& column) { column.stride = UINT64_MAX; }},
      {"stride that wraps to 0", [](Column& column) { column.stride = std::uint64_t{1} << 63; }},
      {"stride that wraps to 2",
       [](Column& column) { column.stride = (std::uint64_t{1} << 63) + 1; }},
      {"stride too large", [](Column& column) { column.stride *= 1000; }},
      {"type", [](Column& column) { column.type = "float64"; }},
      {"type with a space", [](Column& column) { column.type += " "; }}};
  for (const Format format : kFormats) {
    for (Column ShardColumns::*const column :
         {&ShardColumns::image, &ShardColumns::label, &ShardColumns::key}) {
      for (const auto& [what, change] : changes) {
        Shard shard = small_shard(format);
        change(shard.index.columns.edit().*column);
        CAPTURE(name(format), what, ((*shard.index.columns).*column).type);
        CHECK_THROWS_AS(shard.values(), CorruptData);
        shard.index.samples = 0;
        if (what.starts_with("base")) CHECK_NOTHROW((void)shard.values());
      }
    }
    // Without a type, images would not be checked, but read all the same.
    Shard shard = small_shard(format);
    shard.index.columns.edit().image = {1 << 20, 1 << 20, ""};
    CHECK_THROWS_AS(shard.values(), CorruptData);
    shard = small_shard(format);
    shard.index.columns.edit().image.type = "float32";
    CHECK_THROWS_AS(shard.values(), CorruptData);
    shard = small_shard(format);
    shard.index.samples = UINT64_MAX;
    CHECK_THROWS_AS(shard.values(), CorruptData);
  }
}

/// Calls every function that reads. CorruptData is the only error allowed.
void read_all(const ShardIndex& index, const Bytes& file) {
  try {
    const std::filesystem::path path = "x.shard";
    const ColumnValues values(index, path);
    for (std::uint64_t i = 0; i < index.samples; ++i) {
      const auto [offset, bytes] = values.payload(i);
      REQUIRE(offset <= file.size());
      REQUIRE(bytes <= file.size() - offset);
      const auto attempt = [](const auto& call) {
        try {
          call();
        } catch (const CorruptData&) {  // allowed
        }
      };
      attempt([&] { (void)values.label(file, i); });
      attempt([&] { (void)values.key(file, i); });
      attempt([&] { values.verify(file, i); });
    }
  } catch (const CorruptData&) {  // allowed
  }
}

TEST_CASE("a file truncated anywhere is never read past its end", "[formats][columns][malformed]") {
  for (const Format format : kFormats) {
    for (const std::size_t key_bytes : {std::size_t{5}, std::size_t{300}}) {
      const Shard shard(format, {{"a", 1}, {std::string(key_bytes, 'k'), kSmallest}},
                        spec_of(2, 3, 3));
      const std::size_t all = shard.bytes.size();
      // Most sizes before the end of the last tensor are refused for the same reason.
      for (std::size_t size = 0; size < all; size += size + 3000 < all ? 61 : 1) {
        ShardIndex index = shard.index;
        index.bytes = size;
        CAPTURE(name(format), key_bytes, size);
        read_all(index, test::cut(shard.bytes, size));
      }
    }
  }
}

TEST_CASE("columns of other types and places are never read past the end",
          "[formats][columns][malformed]") {
  test::Random random(7);
  for (const Format format : kFormats) {
    const Shard shard = small_shard(format);
    for (int trial = 0; trial < 3000; ++trial) {
      ShardIndex index = shard.index;
      ShardColumns& columns = index.columns.edit();
      for (Column* const column : {&columns.image, &columns.label, &columns.key}) {
        if (test::below(random, 2) == 0) column->base = test::below(random, index.bytes + 2);
        if (test::below(random, 3) == 0) column->stride = test::below(random, index.bytes);
      }
      static constexpr const char* kTypes[] = {"",      "decimal", "varint", "int64",
                                               "ustar", "pax",     "bytes",  "utf8"};
      columns.label.type = kTypes[test::below(random, 8)];
      columns.key.type = kTypes[test::below(random, 8)];
      Bytes file = test::cut(shard.bytes, shard.bytes.size());
      if (trial % 2 == 0) file = test::random_bytes(random, shard.bytes.size());
      CAPTURE(name(format), trial);
      read_all(index, file);
    }
  }
}

}  // namespace
}  // namespace precache
