// SPDX-License-Identifier: Apache-2.0
#include "cli/say.hpp"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace precache {

void write_message(std::string_view text, const char* style) {
  constexpr std::string_view kName = "precache:";
  constexpr std::string_view kWarning = " warning:";
  std::string lines;
  while (!text.empty() && ::isatty(STDERR_FILENO) == 1) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    std::size_t first = 0;
    if (line.starts_with(kName)) {
      first =
          kName.size() + (line.substr(kName.size()).starts_with(kWarning) ? kWarning.size() : 0);
      lines += terminal::styled(STDERR_FILENO, first > kName.size() ? terminal::kYellow : style,
                                line.substr(0, first));
      line.remove_prefix(first);
    }
    const std::size_t indent = first != 0 ? kName.size() + 1 : line.find_first_not_of(' ');
    lines += terminal::wrapped(line, first, std::min<std::size_t>(indent, 10),
                               terminal::text_width(STDERR_FILENO));
    lines += '\n';
  }
  lines += text;
  std::fwrite(lines.data(), 1, lines.size(), stderr);
}

void print_wrapped(std::string_view line) {
  constexpr std::size_t kIndent = 2;
  print_raw(terminal::wrapped(printable(line), 0, kIndent, terminal::text_width(STDOUT_FILENO)) +
            '\n');
}

void print_row(std::string_view title, std::string_view text, std::size_t widest,
               const char* style) {
  constexpr std::size_t kTitleColumns = 9;
  if (text.empty()) return;
  const std::string shown = printable(title);
  const std::string gap(std::max(kTitleColumns, shown.size()) + 1 - shown.size(), ' ');
  print_raw(terminal::styled(STDOUT_FILENO, title == "warning" ? terminal::kYellow : style, shown) +
            gap +
            terminal::wrapped(printable(text), shown.size() + gap.size(), kTitleColumns + 1,
                              std::min(widest, terminal::text_width(STDOUT_FILENO))) +
            '\n');
}

void print_json(const nlohmann::ordered_json& json) {
  using OnBadText = nlohmann::ordered_json::error_handler_t;
  print_raw(json.dump(2, ' ', false, OnBadText::replace) + '\n');
}

}  // namespace precache
