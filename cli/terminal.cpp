// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace precache::terminal {
namespace {

bool has_value(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

}  // namespace

bool is_terminal(int stream) {
  const char* const type = std::getenv("TERM");
  return ::isatty(stream) == 1 && (type == nullptr || std::string_view(type) != "dumb");
}

std::size_t width(int stream) {
  winsize size{};
  if (::isatty(stream) != 1) return SIZE_MAX;
  return ::ioctl(stream, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::size_t text_width(int stream) {
  const std::size_t columns = width(stream);
  return columns == SIZE_MAX ? columns : std::min(columns, kWidestText);
}

std::string styled(int stream, const char* style, std::string_view text) {
  if (text.empty() || !is_terminal(stream) || has_value("NO_COLOR")) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", style, text);
}

std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char byte) { return (static_cast<unsigned char>(byte) & 0xc0U) != 0x80U; }));
}

std::string wrapped(std::string_view text, std::size_t first, std::size_t indent,
                    std::size_t width) {
  std::string result;
  std::size_t column = first;
  bool is_line_empty = true;
  while (!text.empty()) {
    const std::size_t spaces = std::min(text.find_first_not_of(' '), text.size());
    const std::size_t end = std::min(text.find(' ', spaces), text.size());
    const std::string_view word = text.substr(spaces, end - spaces);
    const std::size_t columns = spaces + columns_of(word);
    if (!is_line_empty && column + columns > width) {
      result += '\n' + std::string(indent, ' ');
      column = indent + columns - spaces;
    } else {
      result.append(spaces, ' ');
      column += columns;
    }
    result += word;
    is_line_empty = false;
    text.remove_prefix(end);
  }
  return result;
}

}  // namespace precache::terminal
