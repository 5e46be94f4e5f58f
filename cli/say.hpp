// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string>

namespace precache {

/// Prints to stderr. What cannot be said (a terminal that hung up, a full log) is not worth ending
/// a build for.
template <typename... Arguments>
void say(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  const std::string text = fmt::format(format, std::forward<Arguments>(arguments)...);
  std::fwrite(text.data(), 1, text.size(), stderr);
}

/// Prints to stdout; whether it arrived is checked once, at the end of the program.
template <typename... Arguments>
void print(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  const std::string text = fmt::format(format, std::forward<Arguments>(arguments)...);
  std::fwrite(text.data(), 1, text.size(), stdout);
}

}  // namespace precache
