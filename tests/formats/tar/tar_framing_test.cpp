// SPDX-License-Identifier: Apache-2.0
#include <charconv>
#include <limits>
#include <map>

#include "formats/bytes/crc32c.hpp"
#include "formats/os/file.hpp"
#include "formats/shard/framing.hpp"
#include "formats/tar/ustar.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/shards.hpp"

namespace precache {
namespace {

using test::Bytes;
using test::spec_of;

struct Entry {
  std::string path;        // for a reader that knows pax
  std::string ustar_path;  // for a reader that knows only ustar
  std::map<std::string, std::string> pax;
  Bytes data;
  std::size_t data_offset = 0;
};

std::string field(std::string_view block, std::size_t offset, std::size_t size) {
  const auto text = block.substr(offset, size);
  return std::string(text.substr(0, text.find('\0')));
}

std::uint64_t octal(std::string_view block, std::size_t offset, std::size_t size) {
  const std::string text = field(block, offset, size);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 8);
  REQUIRE(error == std::errc{});
  REQUIRE(end == text.data() + text.size());
  return value;
}

std::map<std::string, std::string> read_pax(std::string_view data) {
  std::map<std::string, std::string> records;
  while (!data.empty()) {
    std::size_t length = 0;
    const auto space = data.find(' ');
    REQUIRE(space != std::string_view::npos);
    std::from_chars(data.data(), data.data() + space, length);
    REQUIRE(length > space + 1);
    REQUIRE(length <= data.size());
    REQUIRE(data[length - 1] == '\n');
    const auto record = data.substr(space + 1, length - space - 2);
    const auto equals = record.find('=');
    REQUIRE(equals != std::string_view::npos);
    records[std::string(record.substr(0, equals))] = record.substr(equals + 1);
    data.remove_prefix(length);
  }
  return records;
}

void check_header(std::string_view block) {
  unsigned sum = 0;
  for (std::size_t i = 0; i < 512; ++i) {
    sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(block[i]);
  }
  REQUIRE(octal(block, 148, 8) == sum);
  REQUIRE(block.substr(257, 8) == std::string_view("ustar\0"
                                                   "00",
                                                   8));
  REQUIRE(octal(block, 100, 8) == 0644);
  REQUIRE(octal(block, 108, 8) == 0);                   // uid
  REQUIRE(octal(block, 116, 8) == 0);                   // gid
  REQUIRE(octal(block, 136, 12) == 0);                  // mtime
  REQUIRE(field(block, 157, 100).empty());              // link name
  REQUIRE(field(block, 265, 64).empty());               // owner and group
  REQUIRE(block.substr(500) == std::string(12, '\0'));  // Archive::Tar refuses anything else
}

/// All entries of an archive, read as POSIX specifies.
std::vector<Entry> read_tar(const Bytes& bytes) {
  const std::string text = test::text_of(bytes);
  std::vector<Entry> entries;
  std::map<std::string, std::string> pax;
  std::size_t at = 0;
  for (;;) {
    REQUIRE(at + 512 <= text.size());
    const auto block = std::string_view(text).substr(at, 512);
    if (block == std::string(512, '\0')) break;
    check_header(block);
    const std::uint64_t size = octal(block, 124, 12);
    REQUIRE(at + 512 + size <= text.size());
    if (block[156] == 'x') {
      pax = read_pax(std::string_view(text).substr(at + 512, size));
    } else {
      REQUIRE(block[156] == '0');
      Entry entry;
      const std::string prefix = field(block, 345, 155);
      entry.ustar_path = (prefix.empty() ? "" : prefix + "/") + field(block, 0, 100);
      entry.path = pax.contains("path") ? pax["path"] : entry.ustar_path;
      entry.pax = pax;
      entry.data_offset = at + 512;
      entry.data = Bytes(bytes.begin() + static_cast<std::ptrdiff_t>(at + 512),
                         bytes.begin() + static_cast<std::ptrdiff_t>(at + 512 + size));
      entries.push_back(entry);
      pax.clear();
    }
    const auto padding = std::string_view(text).substr(at + 512 + size, (512 - size % 512) % 512);
    REQUIRE(padding == std::string(padding.size(), '\0'));
    const auto blocks = std::span(bytes).subspan(at + 512, size + padding.size());
    const std::uint32_t crc = crc32c::value(blocks);
    REQUIRE(octal(block, 329, 8) == (07000000U | crc >> 16));
    REQUIRE(octal(block, 337, 8) == (07000000U | (crc & 0xffffU)));
    at += 512 + size + padding.size();
  }
  REQUIRE(text.size() - at == 1024);
  REQUIRE(test::all_zero(std::span(bytes).subspan(at)));
  return entries;
}

/// Frames a shard with these names and reads it back.
void check_names(const std::vector<SampleName>& names, bool wants_pax) {
  const TensorSpec spec = spec_of(3, 7, 3);
  const auto framing = make_framing(Format::kTar, spec, test::limits_of(names));
  const auto samples = test::make_samples(names, spec.size_bytes());
  const Bytes shard = test::assemble(*framing, samples);
  const ShardColumns columns = framing->columns(names.size());
  CHECK(columns.key.type == (wants_pax ? "pax" : "ustar"));
  CHECK(columns.label.type == "decimal");
  CHECK(columns.image.type == "uint8");
  CHECK(columns.image.base % 64 == 0);
  CHECK(framing->record_bytes() % 512 == 0);
  const auto entries = read_tar(shard);
  REQUIRE(entries.size() == names.size() * 2);
  for (std::size_t i = 0; i < names.size(); ++i) {
    CAPTURE(i, names[i].key);
    const Entry& npy = entries[i * 2];
    const Entry& cls = entries[i * 2 + 1];
    CHECK(npy.path == names[i].key + ".npy");
    CHECK(cls.path == names[i].key + ".cls");
    CHECK(npy.pax.contains("path") == wants_pax);
    CHECK(cls.pax.contains("path") == wants_pax);
    CHECK(test::text_of(cls.data) == std::to_string(names[i].label));
    CHECK(std::ranges::equal(std::span(npy.data).subspan(128), samples[i].tensor));
    CHECK(npy.data_offset + 128 == columns.image.base + i * columns.image.stride);
    CHECK(cls.data_offset == columns.label.base + i * columns.label.stride);
    std::int64_t label = 0;  // as a reader parses the column: digits up to another byte
    const char* text =
        reinterpret_cast<const char*>(&shard[columns.label.base + i * columns.label.stride]);
    std::from_chars(text, text + 21, label);
    CHECK(label == names[i].label);
  }
}

std::string letters(std::size_t count) { return std::string(count, 'k'); }

TEST_CASE("tar records whose names fit ustar have no pax header", "[formats][tar]") {
  check_names({{"a", 0}}, false);
  check_names({{"cat/one", 0}, {"dog/two three", 1}, {"x", -1}}, false);
  check_names({{letters(96), 5}}, false);                                 // 100 with the extension
  check_names({{letters(155) + "/" + letters(96), 5}, {"b", 1}}, false);  // both fields full
  check_names({{letters(50) + "/" + letters(60) + "/" + letters(30), 5}}, false);
  check_names({{"a/" + letters(96), 0}}, false);
}

TEST_CASE("tar records whose names do not fit ustar have pax headers of one size",
          "[formats][tar]") {
  check_names({{letters(97), 5}, {"b", 1}}, true);
  check_names({{letters(156) + "/" + letters(90), 5}, {"b", 1}}, true);
  check_names({{"a/" + letters(97), 5}}, true);
  check_names({{letters(251), 5}}, true);                     // 255 with the extension
  check_names({{letters(252), 5}, {letters(251), 5}}, true);  // 256
  check_names({{letters(100) + "/" + letters(100) + "/" + letters(97), 5}}, true);
}

TEST_CASE("tar pax headers hold names of every length", "[formats][tar]") {
  for (std::size_t size = 1; size <= 1200; ++size) {
    std::vector<SampleName> names{{letters(size), 3}, {letters(97), 4}, {"b", 5}};
    CAPTURE(size);
    check_names(names, true);
  }
}

TEST_CASE("tar pax headers of a dataset have one size for every key", "[formats][tar]") {
  for (const std::size_t longest : {97U, 470U, 480U, 490U, 500U, 4000U}) {
    NameLimits limits;
    limits.include(letters(longest), 0);
    const auto framing = make_framing(Format::kTar, spec_of(2, 2, 3), limits);
    for (std::size_t size = 1; size <= longest; size += longest > 1000 ? 37 : 1) {
      const auto record = test::frame(*framing, {letters(size), 1}, Bytes(12));
      Bytes shard = record.bytes;
      shard.resize(shard.size() + 1024);
      const auto entries = read_tar(shard);
      REQUIRE(entries.size() == 2);
      REQUIRE(entries[0].path == letters(size) + ".npy");
      REQUIRE(entries[1].path == letters(size) + ".cls");
    }
  }
}

TEST_CASE("shortened tar names stay valid UTF-8", "[formats][tar]") {
  const std::string cat = "\xe7\x8c\xab";  // three bytes a character
  for (const std::string& start : {std::string(), std::string("a"), std::string("ab")}) {
    std::string key = start;
    while (key.size() < 150) key += cat;
    check_names({{key, 1}}, true);
    NameLimits limits;
    limits.include(key, 1);
    Bytes shard =
        test::frame(*make_framing(Format::kTar, spec_of(1, 1, 1), limits), {key, 1}, Bytes(1))
            .bytes;
    shard.resize(shard.size() + 1024);
    const auto entries = read_tar(shard);
    const std::string stored = entries[0].ustar_path;
    const std::string mark = "~" + crc32c::text(crc32c::value(std::as_bytes(std::span(key))));
    REQUIRE(stored.ends_with(mark + ".npy"));
    const std::string kept = stored.substr(0, stored.size() - mark.size() - 4);
    CHECK(key.starts_with(kept));
    CHECK((kept.size() - start.size()) % 3 == 0);
    CHECK(stored.size() > 97);
    CHECK(entries[1].ustar_path == kept + mark + ".cls");
  }
}

TEST_CASE("shortened tar names stay distinct and have no dot except the extension's",
          "[formats][tar]") {
  const std::string folder = "v1.5-" + letters(200);
  const auto stored = [](const std::string& path) {
    std::vector<std::byte> block(512);
    ustar::write_header(block, path, 0, 0);
    return field(as_text(block), 0, 100);
  };
  CHECK(stored(folder + "/a.npy") != stored(folder + "/b.npy"));
  CHECK(stored(folder + "/a.npy") == stored(folder + "/a.npy"));
  CHECK(stored(folder + "/a.npy").starts_with("v1_5-kkk"));
  CHECK(stored("v1.5/" + letters(200) + ".jpg").starts_with("v1.5/kkk"));
  CHECK(stored(folder + "/a.npy").size() == 100);
  CHECK(stored(folder + "/a").size() == 100);
  CHECK(stored(folder + "/a." + letters(40)).find('.') == std::string::npos);
}

TEST_CASE("ustar splits a path only where both parts fit", "[formats][tar]") {
  const auto fits = [](const std::string& key) { return ustar::fits(key.size() + 4, key); };
  CHECK(fits("a"));
  CHECK(fits(letters(96)));
  CHECK_FALSE(fits(letters(97)));
  CHECK(fits(letters(155) + "/" + letters(96)));
  CHECK_FALSE(fits(letters(156) + "/" + letters(96)));
  CHECK_FALSE(fits(letters(155) + "/" + letters(97)));
  CHECK(fits(letters(100) + "/" + letters(54) + "/" + letters(96)));
  CHECK_FALSE(fits("/" + letters(97)));  // an empty prefix would lose the slash
}

TEST_CASE("tar labels of any size are decimal numbers", "[formats][tar]") {
  std::vector<SampleName> names;
  for (const std::int64_t label :
       {std::numeric_limits<std::int64_t>::min(), std::int64_t{-1}, std::int64_t{0},
        std::int64_t{999}, std::numeric_limits<std::int64_t>::max()}) {
    names.push_back({"k" + std::to_string(names.size()), label});
  }
  check_names(names, false);
}

TEST_CASE("tar entries of every tensor size are padded to blocks", "[formats][tar]") {
  for (std::uint32_t width = 1; width <= 1100; ++width) {
    const auto framing =
        make_framing(Format::kTar, spec_of(1, width, 1), test::limits_of({{"k", 0}}));
    REQUIRE(framing->tensor_offset() == 640);
    REQUIRE(framing->record_bytes() == (640 + width + 511) / 512 * 512 + 1024);
    REQUIRE(framing->shard_bytes(3) == 3 * framing->record_bytes() + 1024);
  }
}

TEST_CASE("tar holds tensors as .npy files of version 1.0", "[formats][tar][golden]") {
  const auto header_of = [](DType dtype, Layout layout) {
    const TensorSpec spec = spec_of(2, 5, 3, dtype, layout);
    const auto framing = make_framing(Format::kTar, spec, test::limits_of({{"k", 0}}));
    const auto record = test::frame(*framing, {"k", 0}, Bytes(spec.size_bytes()));
    return test::text_of(std::span(record.bytes).subspan(512, 128));
  };
  const std::string chw = header_of(DType::kUint8, Layout::kChw);
  CHECK(chw.substr(0, 10) == std::string("\x93NUMPY\x01\x00\x76\x00", 10));
  CHECK(chw.substr(10, 69) ==
        "{'descr': '|u1', 'fortran_order': False, 'shape': (3, 2, 5), }       ");
  CHECK(chw.back() == '\n');
  CHECK(header_of(DType::kFloat16, Layout::kHwc).find("'descr': '<f2'") != std::string::npos);
  CHECK(header_of(DType::kFloat16, Layout::kHwc).find("'shape': (2, 5, 3)") != std::string::npos);
  CHECK(header_of(DType::kBfloat16, Layout::kChw).find("'descr': '<u2'") != std::string::npos);
  CHECK(header_of(DType::kFloat32, Layout::kChw).find("'descr': '<f4'") != std::string::npos);
}

}  // namespace
}  // namespace precache
