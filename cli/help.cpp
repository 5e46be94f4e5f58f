// SPDX-License-Identifier: Apache-2.0
#include "cli/help.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "cli/terminal.hpp"
#include "formats/bytes/text.hpp"

namespace precache::cli {
namespace {

constexpr std::array<std::string_view, 7> kGroups{"Input",   "Pixels", "Output", "Device",
                                                  "Cluster", "Run",    "Options"};
constexpr std::size_t kCommandColumn = 12;
constexpr std::size_t kTextColumn = 28;  // where descriptions begin
constexpr char kNoBreak = '\x1f';        // a space at which no line ends

std::string styled(const char* style, std::string_view text) {
  return terminal::styled(STDOUT_FILENO, style, text);
}

std::string heading(std::string_view text) {
  return "\n" + styled(terminal::kBold, fmt::format("{}:", text)) + "\n";
}

/// As wide as the terminal even if the help is piped into a pager.
std::size_t help_width() {
  return std::min({terminal::kWidestText, terminal::text_width(STDOUT_FILENO),
                   terminal::text_width(STDERR_FILENO)});
}

/// A name, what follows it, and a text in a column.
std::string entry(const std::string& name, const std::string& value, const std::string& text,
                  std::size_t column = kTextColumn) {
  const std::size_t end = 2 + name.size() + (value.empty() ? 0 : 1 + value.size());
  std::string line = "  " + styled(terminal::kCyan, name);
  if (!value.empty()) line += " " + value;
  if (text.empty()) return line + "\n";
  line += end + 2 > column ? "\n" + std::string(column, ' ') : std::string(column - end, ' ');
  std::string wrapped = terminal::wrapped(text, column, column, help_width());
  std::ranges::replace(wrapped, kNoBreak, ' ');
  const std::size_t standard = std::min(wrapped.find("[default:"), wrapped.size());
  return line + wrapped.substr(0, standard) +
         styled(terminal::kDim, std::string_view(wrapped).substr(standard)) + "\n";
}

std::string entry(const CLI::Option& option) {
  std::string text = option.get_description();
  const std::string standard = option.get_default_str();
  if (!standard.empty()) {
    text += " " + CLI::detail::find_and_replace(fmt::format("[default: {}]", standard), " ",
                                                std::string(1, kNoBreak));
  }
  const bool has_short_name = !option.get_snames().empty();
  const std::string name =
      option.get_positional() ? option.get_name(true)
      : has_short_name ? fmt::format("-{}, --{}", option.get_snames()[0], option.get_lnames()[0])
                       : "--" + option.get_lnames()[0];
  return entry(name, option.get_option_text(), text);
}

std::string usage(const CLI::App& app, const std::string& name) {
  std::string text = name.empty() ? app.get_name() : name;
  if (!app.get_subcommands(nullptr).empty()) return text + " COMMAND [OPTIONS]";
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) text += " " + option->get_name(true) + option->get_option_text();
  }
  return text + " [OPTIONS]";
}

std::string footer(const std::string& text) {
  std::string result;
  for (const std::string& line : CLI::detail::split(text, '\n')) {
    const bool is_heading = line.ends_with(':') && !line.starts_with(' ');
    const std::size_t indent = line.starts_with(' ') ? 6 : 0;
    result += is_heading ? heading(std::string_view(line).substr(0, line.size() - 1))
                         : terminal::wrapped(line, 0, indent, help_width()) + "\n";
  }
  return result;
}

std::string suggestion(const std::string& word, const std::vector<std::string>& names) {
  const std::string question = did_you_mean(word, names);
  return question.empty() ? "" : ". " + question;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

}  // namespace

std::string help_text(const CLI::App& app, const std::string& name) {
  std::string text = terminal::wrapped(app.get_description(), 0, 0, help_width()) + "\n";
  text += heading("Usage") + "  " + usage(app, name) + "\n";
  const auto commands = app.get_subcommands(nullptr);
  if (!commands.empty()) text += heading("Commands");
  for (const CLI::App* command : commands) {
    text += entry(command->get_name(), "", command->get_description(), kCommandColumn);
  }
  for (const std::string_view group : kGroups) {
    std::string entries;
    for (const CLI::Option* option : app.get_options()) {
      if (option->get_group() == group && option != app.get_help_ptr()) entries += entry(*option);
    }
    if (group == (commands.empty() ? "Run" : "Options")) entries += entry(*app.get_help_ptr());
    if (!entries.empty()) text += heading(group) + entries;
  }
  return text + footer(app.get_footer());
}

std::string parse_error_text(const CLI::ParseError& error, const CLI::App& app,
                             const std::vector<std::string>& words) {
  const CLI::App* asked = &app;
  while (!asked->get_subcommands().empty()) asked = asked->get_subcommands().front();
  const bool needs_command = !asked->get_subcommands(nullptr).empty();
  const bool has_extras = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError);
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExcludesError)) {
    return CLI::detail::find_and_replace(error.what(), " excludes ", " cannot be combined with ");
  }
  if (!needs_command && !has_extras) return error.what();
  const auto extras = app.remaining(true);
  const auto word = std::ranges::find_first_of(words, extras);
  if (word != words.end() && word->starts_with('-')) {
    return fmt::format("there is no option '{}'{}", *word,
                       suggestion(word->substr(0, word->find('=')), option_names(*asked)));
  }
  if (!needs_command) return fmt::format("unexpected argument '{}'", *word);
  std::vector<std::string> commands;
  for (const CLI::App* command : asked->get_subcommands(nullptr)) {
    commands.push_back(command->get_name());
  }
  const std::string all = fmt::format("{}", fmt::join(commands, ", "));
  if (word == words.end()) return "no command given; choose one of " + all;
  const std::string near = suggestion(*word, commands);
  return fmt::format("there is no command '{}'{}", *word,
                     near.empty() ? "; the commands are " + all : near);
}

}  // namespace precache::cli
