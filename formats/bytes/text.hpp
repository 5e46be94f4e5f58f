// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace precache {

/// ASCII letters in lower case, other bytes as they are.
[[nodiscard]] inline std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

/// Without white space around it.
[[nodiscard]] inline std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

/// The number that all of the text is; none if it is not one, or does not fit the type.
template <typename Number>
[[nodiscard]] std::optional<Number> parse_number(std::string_view text, int base = 10) {
  Number value = 0;
  const char* const last = text.data() + text.size();
  std::from_chars_result result{};
  if constexpr (std::is_floating_point_v<Number>) {
    result = std::from_chars(text.data(), last, value);
  } else {
    result = std::from_chars(text.data(), last, value, base);
  }
  if (result.ec != std::errc{} || result.ptr != last) return std::nullopt;
  return value;
}

}  // namespace precache
