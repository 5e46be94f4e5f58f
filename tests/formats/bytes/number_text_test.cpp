// SPDX-License-Identifier: Apache-2.0
#include "formats/bytes/number_text.hpp"

#include "tests/support/catch.hpp"

namespace precache {
namespace {

TEST_CASE("bytes have one decimal and the right unit", "[formats]") {
  CHECK(size_text(0) == "0 B");
  CHECK(size_text(999) == "999 B");
  CHECK(size_text(1000) == "1.0 KB");
  CHECK(size_text(1500) == "1.5 KB");
  CHECK(size_text(999'949) == "999.9 KB");
  CHECK(size_text(999'950) == "1.0 MB");  // never "1000.0 KB"
  CHECK(size_text(192'900'000'000) == "192.9 GB");
  CHECK(size_text(UINT64_MAX) == "18446.7 PB");
}

TEST_CASE("counts have commas and plural nouns", "[formats]") {
  CHECK(human::count(0) == "0");
  CHECK(human::count(999) == "999");
  CHECK(human::count(1000) == "1,000");
  CHECK(human::count(1281167) == "1,281,167");
  CHECK(human::count(UINT64_MAX) == "18,446,744,073,709,551,615");
  CHECK(human::count(0, "image") == "0 images");
  CHECK(human::count(1, "image") == "1 image");
  CHECK(human::count(1, "class") == "1 class");
  CHECK(human::count(2000, "class") == "2,000 classes");
}

TEST_CASE("seconds are shown as a clock", "[formats]") {
  CHECK(human::clock(0) == "0:00");
  CHECK(human::clock(7.9) == "0:07");
  CHECK(human::clock(61) == "1:01");
  CHECK(human::clock(3599) == "59:59");
  CHECK(human::clock(3723) == "1:02:03");
  CHECK(human::clock(-5) == "0:00");
}

}  // namespace
}  // namespace precache
