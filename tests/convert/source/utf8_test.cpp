// SPDX-License-Identifier: Apache-2.0
#include "convert/source/utf8.hpp"

#include "tests/support/catch.hpp"

namespace precache {
namespace {

// The text's bytes above 0x7f as they would look if none of them were UTF-8.
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

TEST_CASE("every character of Unicode passes unchanged and no surrogate does", "[convert][utf8]") {
  for (char32_t point = 0; point < 0x110000; ++point) {
    const std::string text = encode(point);
    const bool surrogate = point >= 0xd800 && point < 0xe000;
    if (escape_invalid_utf8(text) == (surrogate ? all_escaped(text) : text)) continue;
    CAPTURE(static_cast<std::uint32_t>(point));
    FAIL_CHECK("wrong");
  }
}

TEST_CASE("bytes that are no UTF-8 are escaped one by one", "[convert][utf8][malformed]") {
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
    // What stands around it is not touched, and the next character is found again.
    CHECK(escape_invalid_utf8("a" + std::string(text) + "b\xc3\xa9") ==
          "a" + all_escaped(text) + "b\xc3\xa9");
  }
}

TEST_CASE("a cut sequence does not swallow what follows", "[convert][utf8][malformed]") {
  CHECK(escape_invalid_utf8("\xe7\x8c/x") == "%E7%8C/x");
  CHECK(escape_invalid_utf8("\xf0\x9f\xc3\xa9") == "%F0%9F\xc3\xa9");
  CHECK(escape_invalid_utf8("\xc3\xc3\xa9") == "%C3\xc3\xa9");
}

TEST_CASE("plain text and percent signs pass unchanged", "[convert][utf8]") {
  CHECK(escape_invalid_utf8("").empty());
  CHECK(escape_invalid_utf8("100%41 \t\n/.") == "100%41 \t\n/.");
  CHECK(escape_invalid_utf8({"a\0b", 3}) == std::string("a\0b", 3));
}

}  // namespace
}  // namespace precache
