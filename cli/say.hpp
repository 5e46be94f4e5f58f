// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <type_traits>

#include "cli/terminal.hpp"
#include "formats/bytes/utf8.hpp"

namespace precache {

/// Formats a text. Names and reasons come from third-party files: what would control a terminal is
/// escaped.
template <typename... Arguments>
std::string escaped_text(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  [[maybe_unused]] const auto escaped = []<typename Value>(const Value& value) -> decltype(auto) {
    if constexpr (std::is_convertible_v<const Value&, std::string_view>) {
      return printable(value);
    } else {
      return (value);
    }
  };
  return fmt::format(fmt::runtime(fmt::string_view(format)), escaped(arguments)...);
}

/// Writes lines to stderr. On a terminal they are wrapped, and `precache:` at the start of a line
/// is in this style. An error is ignored: a terminal that hung up or a full log must not end a
/// build.
void write_message(std::string_view text, const char* style);

/// Prints to stderr.
template <typename... Arguments>
void say(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  write_message(escaped_text(format, std::forward<Arguments>(arguments)...), terminal::kBold);
}

/// Prints to stdout a text that is escaped already; whether it arrived is checked once, at the end
/// of the program.
inline void print_raw(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

/// Prints to stdout.
template <typename... Arguments>
void print(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  print_raw(escaped_text(format, std::forward<Arguments>(arguments)...));
}

/// Prints a line to stdout, which is wrapped on a terminal.
void print_wrapped(std::string_view line);

/// Prints a line of a summary to stdout: a title, and next to it a text, which is wrapped to the
/// terminal, and to `widest` columns everywhere. Nothing if the text is empty.
void print_row(std::string_view title, std::string_view text, std::size_t widest = SIZE_MAX,
               const char* style = terminal::kBold);

/// Prints to stdout, for programs. JSON escapes what it cannot hold by itself.
void print_json(const nlohmann::ordered_json& json);

}  // namespace precache
