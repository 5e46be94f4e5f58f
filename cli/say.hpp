// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <type_traits>

#include "formats/bytes/utf8.hpp"

namespace precache {

/// Names and reasons come from files of others: what would command a terminal is spelt out.
template <typename Value>
decltype(auto) escaped_for_terminal(const Value& value) {
  if constexpr (std::is_convertible_v<const Value&, std::string_view>) {
    return printable(value);
  } else {
    return (value);
  }
}

/// Prints to stderr. What cannot be said (a terminal that hung up, a full log) is not worth ending
/// a build for.
template <typename... Arguments>
void say(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  const std::string text =
      fmt::format(fmt::runtime(fmt::string_view(format)), escaped_for_terminal(arguments)...);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

/// Prints to stdout; whether it arrived is checked once, at the end of the program.
template <typename... Arguments>
void print(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  const std::string text =
      fmt::format(fmt::runtime(fmt::string_view(format)), escaped_for_terminal(arguments)...);
  std::fwrite(text.data(), 1, text.size(), stdout);
}

/// Prints to stdout, for programs. JSON has its own way to spell what it cannot hold.
void print_json(const nlohmann::ordered_json& json);

}  // namespace precache
