// SPDX-License-Identifier: Apache-2.0
#include "convert/source/slice.hpp"

#include "precache/formats/error.hpp"
#include "tests/support/catch.hpp"

namespace precache {
namespace {

const std::filesystem::path kPath = "plan";

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::string three_samples() {
  std::string bytes;
  append_sample(bytes, {"dog/b.jpg", 20, 1'700'000'000'123'456'789, 1}, "");
  append_sample(bytes, {"cat/\xff\n.jpg", UINT64_MAX, -5, -1, 0, 0, "targets"}, "cat/%FF~2");
  append_sample(bytes, {"", 0, 0, INT64_MAX, UINT32_MAX, UINT64_MAX}, "key");
  return bytes;
}

TEST_CASE("samples of a slice are read as they were written", "[convert][slice][roundtrip]") {
  const Slice slice(bytes_of(three_samples()), 3, kPath, 0);
  REQUIRE(slice.size() == 3);
  const ListedFile first = slice.file(0);
  CHECK(first.path == "dog/b.jpg");
  CHECK(first.size == 20);
  CHECK(first.mtime_ns == 1'700'000'000'123'456'789);
  CHECK(first.label == 1);
  CHECK(first.targets.empty());
  CHECK(slice.key(0, KeyRule::kPath, false) == "dog/b");
  const ListedFile second = slice.file(1);
  CHECK(second.path == "cat/\xff\n.jpg");
  CHECK(second.size == UINT64_MAX);
  CHECK(second.mtime_ns == -5);
  CHECK(second.label == -1);
  CHECK(second.targets == "targets");
  CHECK(slice.key(1, KeyRule::kPath, false) == "cat/%FF~2");
  const ListedFile third = slice.file(2);
  CHECK(third.path.empty());
  CHECK(third.label == INT64_MAX);
  CHECK(third.shard == UINT32_MAX);
  CHECK(third.offset == UINT64_MAX);
  CHECK(slice.key(2, KeyRule::kPath, false) == "key");
  CHECK(Slice({}, 0, kPath, 0).size() == 0);
}

TEST_CASE("a slice cut anywhere or with another count is corrupt", "[convert][slice][malformed]") {
  const std::string whole = three_samples();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    CHECK_THROWS_AS(Slice(bytes_of(whole.substr(0, size)), 3, kPath, 0), CorruptData);
  }
  CHECK_THROWS_AS(Slice(bytes_of(whole + "x"), 3, kPath, 0), CorruptData);
  for (const std::uint64_t samples :
       {std::uint64_t{0}, std::uint64_t{2}, std::uint64_t{4}, UINT64_MAX}) {
    CHECK_THROWS_AS(Slice(bytes_of(whole), samples, kPath, 0), CorruptData);
  }
}

TEST_CASE("a sample that claims any length is corrupt", "[convert][slice][malformed]") {
  const std::string whole = three_samples();
  for (const std::size_t at : {0U, 4U, 8U}) {
    for (const char value : {'\x40', '\x7f', '\xff'}) {
      std::string text = whole;
      text[at + 3] = value;  // the highest byte of a length
      CHECK_THROWS_AS(Slice(bytes_of(text), 3, kPath, 0), CorruptData);
    }
  }
}

}  // namespace
}  // namespace precache
