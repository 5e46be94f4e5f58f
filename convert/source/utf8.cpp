// SPDX-License-Identifier: Apache-2.0
#include "convert/source/utf8.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "formats/bytes/utf8.hpp"

namespace precache {
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
