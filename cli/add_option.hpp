// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <array>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

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

}  // namespace precache::cli
