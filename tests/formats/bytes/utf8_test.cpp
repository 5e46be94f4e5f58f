// SPDX-License-Identifier: Apache-2.0
#include "formats/bytes/utf8.hpp"

#include "tests/support/catch.hpp"

namespace precache {
namespace {

TEST_CASE("harmless text is shown unchanged", "[formats]") {
  for (const char* text :
       {"", "a/b c.jpg", "Gr\u00fc\u00dfe", "\u65e5\u672c\u8a9e", "\U0001F600"}) {
    CHECK(printable(text) == text);
  }
}

TEST_CASE("control characters and direction changes are escaped", "[formats]") {
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

TEST_CASE("bytes that are not UTF-8 are shown as escapes", "[formats][malformed]") {
  CHECK(printable("a\xff") == "a\\xff");
  CHECK(printable("\xe2\x80") == "\\xe2\\x80");           // cut
  CHECK(printable("\xc0\xaf") == "\\xc0\\xaf");           // overlong
  CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");  // a surrogate
}

// The text with all bytes above 0x7f escaped, as if none of them were UTF-8.
std::string all_escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      result += c;
    } else {
      result += '%';
      result += "0123456789ABCDEF"[byte >> 4];
      result += "0123456789ABCDEF"[byte & 15];
    }
  }
  return result;
}

std::string encode(char32_t point) {
  std::string text;
  const auto put = [&](char32_t bits) { text += static_cast<char>(bits); };
  if (point < 0x80) {
    put(point);
  } else if (point < 0x800) {
    put(0xc0 | point >> 6);
    put(0x80 | (point & 0x3f));
  } else if (point < 0x10000) {
    put(0xe0 | point >> 12);
    put(0x80 | (point >> 6 & 0x3f));
    put(0x80 | (point & 0x3f));
  } else {
    put(0xf0 | point >> 18);
    put(0x80 | (point >> 12 & 0x3f));
    put(0x80 | (point >> 6 & 0x3f));
    put(0x80 | (point & 0x3f));
  }
  return text;
}

TEST_CASE("every character of Unicode passes unchanged and no surrogate does", "[formats][utf8]") {
  for (char32_t point = 0; point < 0x110000; ++point) {
    const std::string text = encode(point);
    const bool surrogate = point >= 0xd800 && point < 0xe000;
    if (escape_invalid_utf8(text) == (surrogate ? all_escaped(text) : text)) continue;
    CAPTURE(static_cast<std::uint32_t>(point));
    FAIL_CHECK("wrong");
  }
}

TEST_CASE("bytes that are not UTF-8 are escaped one by one", "[formats][utf8][malformed]") {
  for (const std::string_view text : {"\x80",
                                      "\xbf",
                                      "\xc0",
                                      "\xc1",
                                      "\xf5",
                                      "\xff",
                                      "\xfe\xff",  // never valid
                                      "\xc0\xaf",
                                      "\xc1\xbf",
                                      "\xe0\x80\xaf",
                                      "\xe0\x9f\xbf",
                                      "\xf0\x80\x80\xaf",  // overlong
                                      "\xf0\x8f\xbf\xbf",
                                      "\xf8\x88\x80\x80\x80",
                                      "\xed\xa0\x80",
                                      "\xed\xbf\xbf",
                                      "\xed\xa0\xbd\xed\xb8\x80",  // surrogates
                                      "\xf4\x90\x80\x80",
                                      "\xf7\xbf\xbf\xbf",  // beyond U+10FFFF
                                      "\xc3",
                                      "\xe7\x8c",
                                      "\xe7",
                                      "\xf0\x9f\x98",
                                      "\xf0\x9f",
                                      "\xf0"}) {
    CAPTURE(all_escaped(text));
    CHECK(escape_invalid_utf8(text) == all_escaped(text));
    // The characters before and after it are unchanged.
    CHECK(escape_invalid_utf8("a" + std::string(text) + "b\xc3\xa9") ==
          "a" + all_escaped(text) + "b\xc3\xa9");
  }
}

TEST_CASE("a truncated sequence does not swallow the next character",
          "[formats][utf8][malformed]") {
  CHECK(escape_invalid_utf8("\xe7\x8c/x") == "%E7%8C/x");
  CHECK(escape_invalid_utf8("\xf0\x9f\xc3\xa9") == "%F0%9F\xc3\xa9");
  CHECK(escape_invalid_utf8("\xc3\xc3\xa9") == "%C3\xc3\xa9");
}

TEST_CASE("plain text and percent signs pass unchanged", "[formats][utf8]") {
  CHECK(escape_invalid_utf8("").empty());
  CHECK(escape_invalid_utf8("100%41 \t\n/.") == "100%41 \t\n/.");
  CHECK(escape_invalid_utf8({"a\0b", 3}) == std::string("a\0b", 3));
}

}  // namespace
}  // namespace precache
