// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/option_values.hpp"

/// Options as all subcommands show and read them.
namespace precache::cli {

/// `value` is what the help shows behind the option; `on_text` may throw InvalidArgument.
CLI::Option* add(CLI::App& app, const std::string& option, const std::string& value,
                 const std::string& text, const std::function<void(const std::string&)>& on_text);

/// An option whose value is one of some words; `chosen` gets the one given.
CLI::Option* add_choice(CLI::App& app, const std::string& option,
                        const std::vector<std::string>& words, const std::string& standard,
                        const std::string& text,
                        const std::function<void(const std::string&)>& chosen);

/// The names of enumerators, for add_choice().
template <typename Enum, std::size_t kCount>
std::vector<std::string> names(const std::array<Enum, kCount>& values) {
  std::vector<std::string> words;
  for (const Enum value : values) words.emplace_back(name(value));
  return words;
}

/// --proto and --message, for TFRecords of other messages than tf.train.Example.
void add_message_options(CLI::App& app, std::filesystem::path& proto, std::string& message);

/// What `inspect` and `verify` have in common: PATH ..., --split, --quiet and --json.
void add_shard_paths(CLI::App& app, std::vector<std::filesystem::path>& paths,
                     std::optional<std::string>& split, bool& quiet, bool& json);

/// An option whose value is a text that is not empty.
template <typename Target>
CLI::Option* add_text(CLI::App& app, const std::string& option, const std::string& value,
                      const std::string& text, Target& target) {
  return add(app, option, value, text, [&target, option](const std::string& given) {
    target = option_values::not_empty(option, given);
  });
}

/// An option whose value is a whole number from `low` to `high`.
template <typename Number, typename Target>
CLI::Option* add_integer(CLI::App& app, const std::string& option, const std::string& value,
                         const std::string& text, Number low, Number high, Target& target) {
  return add(app, option, value, text, [=, &target](const std::string& given) {
    target = static_cast<Number>(option_values::integer(option, given, low, high));
  });
}

/// An option whose value is the name of one of `values`.
template <typename Enum, std::size_t kCount, typename Target>
CLI::Option* add_enum(CLI::App& app, const std::string& option,
                      const std::array<Enum, kCount>& values, const std::string& standard,
                      const std::string& text, Target& target) {
  return add_choice(app, option, names(values), standard, text, [&](const std::string& word) {
    target = *std::ranges::find(values, word, [](Enum value) { return name(value); });
  });
}

}  // namespace precache::cli
