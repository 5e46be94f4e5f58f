// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace precache {

/// Converts ASCII letters to lower case and leaves other bytes as they are.
[[nodiscard]] inline std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

/// Removes white space at both ends.
[[nodiscard]] inline std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

/// The whole text as a number; none if it is not a number or does not fit the type.
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

/// How many letters have to be added, removed or replaced to turn one text into the other.
[[nodiscard]] inline std::size_t edits_between(std::string_view one, std::string_view other) {
  std::vector<std::size_t> row(other.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= one.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= other.size(); ++j) {
      const std::size_t replaced = diagonal + (one[i - 1] == other[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

/// The name that a misspelt word most likely means; empty if none is near.
[[nodiscard]] inline std::string nearest_name(std::string_view word,
                                              const std::vector<std::string>& names) {
  std::string best;
  if (word.empty()) return best;
  // Two edits turn any word of three letters into nearly any other.
  const std::size_t most = word.size() < 4 ? 1 : (word.size() + 2) / 3;
  std::size_t fewest = most + 1;
  for (const std::string& name : names) {
    const bool is_part = name.starts_with(word) || word.starts_with(name);
    const std::size_t edits =
        is_part ? std::min(edits_between(word, name), most) : edits_between(word, name);
    if (edits >= fewest) continue;
    best = name;
    fewest = edits;
  }
  return best;
}

/// "Did you mean 'train'?"; empty if no name is near.
[[nodiscard]] inline std::string did_you_mean(std::string_view word,
                                              const std::vector<std::string>& names) {
  const std::string near = nearest_name(word, names);
  return near.empty() ? "" : "Did you mean '" + near + "'?";
}

}  // namespace precache
