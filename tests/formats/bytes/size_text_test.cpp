// SPDX-License-Identifier: Apache-2.0
#include "formats/bytes/size_text.hpp"

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

}  // namespace
}  // namespace precache
