// SPDX-License-Identifier: Apache-2.0
#include "formats/bytes/utf8.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace precache {
namespace {

/// Whether a terminal or an HTML page would not simply draw this well-formed sequence.
bool is_command(std::string_view sequence) {
  const auto first = static_cast<unsigned char>(sequence[0]);
  if (sequence.size() == 1) return first < 0x20 || first == 0x7f;
  if (sequence.size() == 2) return first == 0xc2 && static_cast<unsigned char>(sequence[1]) < 0xa0;
  // U+200B, U+200E, U+200F, U+2028 to U+202E, U+2060 to U+2069 and U+FEFF: invisible characters,
  // direction marks and overrides, and line ends. Joiners (U+200C, U+200D) belong to the letters
  // around them.
  return sequence == "\u200b" || sequence == "\u200e" || sequence == "\u200f" ||
         (sequence >= "\u2060" && sequence <= "\u2064") || sequence == "\ufeff" ||
         (sequence >= "\u2028" && sequence <= "\u202e") ||
         (sequence >= "\u2066" && sequence <= "\u2069");
}

}  // namespace

std::size_t utf8_sequence_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xc0U) == 0x80U; };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xc2 && lead <= 0xdf) return follows(1) ? 2 : 0;
  if (lead >= 0xe0 && lead <= 0xef) {
    if (lead == 0xe0 && byte(1) < 0xa0) return 0;  // overlong
    if (lead == 0xed && byte(1) > 0x9f) return 0;  // surrogate
    return follows(1) && follows(2) ? 3 : 0;
  }
  if (lead >= 0xf0 && lead <= 0xf4) {
    if (lead == 0xf0 && byte(1) < 0x90) return 0;  // overlong
    if (lead == 0xf4 && byte(1) > 0x8f) return 0;  // beyond U+10FFFF
    return follows(1) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

std::string printable(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const std::size_t bytes = utf8_sequence_bytes(text);
    const std::string_view sequence = text.substr(0, std::max<std::size_t>(bytes, 1));
    if (bytes != 0 && !is_command(sequence)) {
      result += sequence;
    } else {
      for (const char byte : sequence) {
        result += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
      }
    }
    text.remove_prefix(sequence.size());
  }
  return result;
}

std::string escape_invalid_utf8(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const std::size_t bytes = utf8_sequence_bytes(text);
    if (bytes == 0) {
      result += fmt::format("%{:02X}", static_cast<unsigned char>(text[0]));
    } else {
      result += text.substr(0, bytes);
    }
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  return result;
}

}  // namespace precache
