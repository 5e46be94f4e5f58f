// SPDX-License-Identifier: Apache-2.0
#include "convert/source/listing.hpp"

#include <string>
#include <utility>

#include "tests/support/catch.hpp"

namespace precache {
namespace {

Listing small_listing() {
  Listing listing;
  listing.add({"dog/b.jpg", 20, 1'700'000'000'123'456'789, 1});
  listing.add({"cat/\xff\n.jpg", UINT64_MAX, -5, -1});
  listing.add({"cat/a.jpg", 0, 0, INT64_MAX, UINT32_MAX, UINT64_MAX});
  return listing;
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

TEST_CASE("a listing's fingerprint and stamp see targets", "[convert][listing]") {
  Listing without;
  without.add({"a", 1, 2, 3});
  Listing with;
  with.add({.path = "a", .size = 1, .mtime_ns = 2, .label = 3, .targets = "xy"});
  CHECK(with[0].targets == "xy");
  CHECK(with[0].path == "a");
  CHECK(with.fingerprint() != without.fingerprint());
  CHECK(with.stamp() != without.stamp());
}

TEST_CASE("a listing keeps texts of any size in place while it grows and moves",
          "[convert][listing]") {
  Listing listing;
  const std::string large(3 << 20, 'x');
  listing.add({"first", 1, 0, 0});
  const std::string_view first = listing[0].path;
  listing.add({large, 2, 0, 0});
  for (int i = 0; i < 20'000; ++i) listing.add({"path/" + std::to_string(i), 3, 0, i});
  CHECK(listing[0].path.data() == first.data());
  CHECK(listing[1].path == large);
  Listing other;
  other.add({"other", 4, 0, 0});
  other.append(std::move(listing));
  REQUIRE(other.size() == 20'003);
  CHECK(other[1].path.data() == first.data());
  CHECK(other[20'002].path == "path/19999");
  other.sort_by_path();
  CHECK(other[0].path == "first");
  CHECK(other[1].path == "other");
}

}  // namespace
}  // namespace precache
