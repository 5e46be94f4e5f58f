// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
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

/// An option whose value is one of some words; `chosen` gets the position of the one given.
CLI::Option* add_choice(CLI::App& app, const std::string& option,
                        const std::vector<std::string>& words, const std::string& standard,
                        const std::string& text, const std::function<void(std::size_t)>& chosen);

/// What `inspect` and `verify` have in common: PATH ..., --split, --quiet and --json.
void add_shard_paths(CLI::App& app, std::vector<std::filesystem::path>& paths,
                     std::optional<std::string>& split, bool& quiet, bool& json);

}  // namespace precache::cli
