// SPDX-License-Identifier: Apache-2.0
#include "convert/source/listing.hpp"

#include "precache/formats/error.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temp_folder.hpp"

namespace precache {
namespace {

constexpr std::size_t kHeaderBytes = 40;

Listing small_listing() {
  Listing listing;
  listing.add({"dog/b.jpg", 20, 1'700'000'000'123'456'789, 1});
  listing.add({"cat/\xff\n.jpg", UINT64_MAX, -5, -1});
  listing.add({"cat/a.jpg", 0, 0, INT64_MAX, UINT32_MAX, UINT64_MAX});
  return listing;
}

void check_equal(const Listing& a, const Listing& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    CHECK(a[i].path == b[i].path);
    CHECK(a[i].size == b[i].size);
    CHECK(a[i].mtime_ns == b[i].mtime_ns);
    CHECK(a[i].label == b[i].label);
    CHECK(a[i].shard == b[i].shard);
    CHECK(a[i].offset == b[i].offset);
  }
}

TEST_CASE("a listing is saved and loaded as it was", "[convert][listing][roundtrip]") {
  const test::TempFolder folder;
  const auto path = folder / "listing";
  const Listing listing = small_listing();
  listing.save(path);
  check_equal(Listing::load(path), listing);
  CHECK(Listing::load(path).fingerprint() == listing.fingerprint());
  Listing().save(path);
  CHECK(Listing::load(path).size() == 0);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("a listing sorts by the bytes of its paths", "[convert][listing]") {
  Listing listing = small_listing();
  listing.add({"cat", 1, 1, 7});
  listing.sort_by_path();
  CHECK(listing[0].path == "cat");
  CHECK(listing[0].label == 7);
  CHECK(listing[1].path == "cat/a.jpg");
  CHECK(listing[2].path == "cat/\xff\n.jpg");  // bytes compare as unsigned
  CHECK(listing[3].path == "dog/b.jpg");
  CHECK(listing[3].size == 20);
}

TEST_CASE("a listing sorts equal paths by their place", "[convert][listing]") {
  Listing listing;
  listing.add({"a", 0, 0, 0, 1, 0});
  listing.add({"a", 0, 0, 0, 0, 512});
  listing.add({"a", 0, 0, 0, 0, 0});
  listing.sort_by_path();
  CHECK(listing[0].offset == 0);
  CHECK(listing[0].shard == 0);
  CHECK(listing[1].offset == 512);
  CHECK(listing[2].shard == 1);
}

TEST_CASE("a listing takes over another one", "[convert][listing]") {
  Listing listing = small_listing();
  Listing other;
  other.add({"x/y.png", 9, 8, 7});
  listing.append(other);
  listing.append(Listing());
  REQUIRE(listing.size() == 4);
  CHECK(listing[3].path == "x/y.png");
  CHECK(listing[3].label == 7);
  CHECK(listing[2].path == "cat/a.jpg");
  listing.set_label(3, 12);
  CHECK(listing[3].label == 12);
}

TEST_CASE("a listing's fingerprint sees path and size and label and order but no time",
          "[convert][listing]") {
  const auto fingerprint = [](std::initializer_list<ListedFile> files) {
    Listing listing;
    for (const auto& file : files) listing.add(file);
    return listing.fingerprint();
  };
  const std::string base = fingerprint({{"a", 1, 2, 3}, {"bc", 4, 5, 6}});
  CHECK(base.starts_with("crc64:"));
  CHECK(base.size() == 22);
  CHECK(fingerprint({{"a", 1, 99, 3}, {"bc", 4, 98, 6}}) == base);
  CHECK(fingerprint({{"a", 1, 0, 3, 7, 512}, {"bc", 4, 0, 6, 7, 2048}}) == base);
  CHECK(fingerprint({{"a", 2, 2, 3}, {"bc", 4, 5, 6}}) != base);
  CHECK(fingerprint({{"a", 1, 2, 4}, {"bc", 4, 5, 6}}) != base);
  CHECK(fingerprint({{"x", 1, 2, 3}, {"bc", 4, 5, 6}}) != base);
  CHECK(fingerprint({{"ab", 1, 2, 3}, {"c", 4, 5, 6}}) != base);
  CHECK(fingerprint({{"bc", 4, 5, 6}, {"a", 1, 2, 3}}) != base);
  CHECK(fingerprint({{"a", 1, 2, 3}}) != base);
}

TEST_CASE("a listing cut anywhere is corrupt", "[convert][listing][malformed]") {
  const test::TempFolder folder;
  const auto path = folder / "listing";
  small_listing().save(path);
  const std::string whole = test::read_text(path);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    test::write_text(path, whole.substr(0, size));
    CAPTURE(size);
    REQUIRE_THROWS_AS(Listing::load(path), CorruptData);
  }
  test::write_text(path, whole + "x");
  CHECK_THROWS_AS(Listing::load(path), CorruptData);
  std::filesystem::remove(path);
  CHECK_THROWS_AS(Listing::load(path), IoError);
}

TEST_CASE("a listing with any byte changed is corrupt", "[convert][listing][malformed]") {
  const test::TempFolder folder;
  const auto path = folder / "listing";
  small_listing().save(path);
  const std::string whole = test::read_text(path);
  REQUIRE(whole.size() > kHeaderBytes);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const int change : {0x01, 0x80, 0xff}) {
      std::string text = whole;
      text[at] = static_cast<char>(text[at] ^ change);
      test::write_text(path, text);
      CAPTURE(at, change);
      REQUIRE_THROWS_AS(Listing::load(path), CorruptData);
    }
  }
}

TEST_CASE("a listing that claims any number of entries is corrupt and takes no memory",
          "[convert][listing][malformed]") {
  const test::TempFolder folder;
  const auto path = folder / "listing";
  small_listing().save(path);
  const std::string whole = test::read_text(path);
  for (const std::uint64_t count : {std::uint64_t{1} << 32, std::uint64_t{1} << 61, UINT64_MAX}) {
    for (const std::size_t at : {16U, 24U}) {
      std::string text = whole;
      for (std::size_t i = 0; i < 8; ++i) text[at + i] = static_cast<char>(count >> 8 * i);
      test::write_text(path, text);
      CHECK_THROWS_AS(Listing::load(path), CorruptData);
    }
  }
}

}  // namespace
}  // namespace precache
