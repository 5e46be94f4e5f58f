// SPDX-License-Identifier: Apache-2.0
#include "formats/bytes/utf8.hpp"

#include "tests/support/catch.hpp"

namespace precache {
namespace {

TEST_CASE("text that is harmless is shown as it is", "[formats]") {
  for (const char* text :
       {"", "a/b c.jpg", "Gr\u00fc\u00dfe", "\u65e5\u672c\u8a9e", "\U0001F600"}) {
    CHECK(printable(text) == text);
  }
}

TEST_CASE("what would command a terminal or turn text around is spelled out", "[formats]") {
  CHECK(printable("\x1b[2J") == "\\x1b[2J");
  CHECK(printable("a\nb\tc") == "a\\x0ab\\x09c");
  CHECK(printable("\x7f") == "\\x7f");
  CHECK(printable("\u0085") == "\\xc2\\x85");  // a control character of eight bits
  CHECK(printable("\u202egpj") == "\\xe2\\x80\\xaegpj");
  CHECK(printable("\ufeffant") == "\\xef\\xbb\\xbfant");
  CHECK(printable("a\u200bnt") == "a\\xe2\\x80\\x8bnt");
  CHECK(printable("\u2066") == "\\xe2\\x81\\xa6");
  CHECK(printable("\u2027\u202f") == "\u2027\u202f");  // their neighbours are harmless
}

TEST_CASE("bytes that are no UTF-8 are spelled out", "[formats][malformed]") {
  CHECK(printable("a\xff") == "a\\xff");
  CHECK(printable("\xe2\x80") == "\\xe2\\x80");           // cut
  CHECK(printable("\xc0\xaf") == "\\xc0\\xaf");           // overlong
  CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");  // a surrogate
}

}  // namespace
}  // namespace precache
