// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "cli/option_values.hpp"

/// Options as all subcommands show and read them.
namespace precache::cli {

/// The heading under which the help shows the options that are added from now on: Input, Pixels,
/// Output, Device or Run.
void begin_group(CLI::App& app, const std::string& name);

/// A required argument without a name; `suffix` follows it in the usage.
template <typename Target>
void add_argument(CLI::App& app, const std::string& name, const std::string& text, Target& target,
                  const std::string& suffix = "") {
  app.add_option(name, target, text)->required()->option_text(suffix);
}

/// `value` is what the help shows after the option, and in brackets its default: "N [224]".
/// `on_text` may throw InvalidArgument.
CLI::Option* add(CLI::App& app, const std::string& option, const std::string& value,
                 const std::string& text, const std::function<void(const std::string&)>& on_text);

/// An option whose value is one of some words; `chosen` gets the one given. An empty `standard`
/// stands for no default.
CLI::Option* add_choice(CLI::App& app, const std::string& option,
                        const std::vector<std::string>& words, const std::string& standard,
                        const std::string& text,
                        const std::function<void(const std::string&)>& chosen);

/// An option whose value is a text that is not empty.
template <typename Target>
CLI::Option* add_text(CLI::App& app, const std::string& option, const std::string& value,
                      const std::string& text, Target& target) {
  return add(app, option, value, text, [&target, option](const std::string& given) {
    target = option_values::not_empty(option, given);
  });
}

/// An option whose value is a whole number from `low` to `high`, which the help shows.
template <typename Number, typename Target>
CLI::Option* add_integer(CLI::App& app, const std::string& option, const std::string& value,
                         const std::string& text, Number low, Number high, Target& target) {
  const std::string range =
      high == std::numeric_limits<std::uint64_t>::max() ? "" : fmt::format(", {} to {}", low, high);
  return add(app, option, value, text + range, [=, &target](const std::string& given) {
    target = static_cast<Number>(option_values::integer(option, given, low, high));
  });
}

/// An option whose value is the name of one of `values`.
template <typename Enum, std::size_t kCount, typename Target>
CLI::Option* add_enum(CLI::App& app, const std::string& option,
                      const std::array<Enum, kCount>& values, const std::string& standard,
                      const std::string& text, Target& target) {
  std::vector<std::string> words;
  for (const Enum value : values) words.emplace_back(name(value));
  return add_choice(app, option, words, standard, text, [&](const std::string& word) {
    target = *std::ranges::find(values, word, [](Enum value) { return name(value); });
  });
}

/// --jobs, for commands whose threads are limited by what the process may use.
template <typename Target>
void add_jobs(CLI::App& app, unsigned most, Target& target) {
  add_integer(app, "--jobs", "N [all cores the process may use]", "Number of threads", 1U, most,
              target);
}

/// --proto and --message, for TFRecords of other messages than tf.train.Example.
void add_message_options(CLI::App& app, std::filesystem::path& proto, std::string& message);

}  // namespace precache::cli
