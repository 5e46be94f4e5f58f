// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace precache::cli {

/// The help of a command, or of the program, as wide as the terminal allows: description, usage,
/// options by group with defaults, and the footer, whose indented lines stay as they are.
[[nodiscard]] std::string help_text(const CLI::App& app, const std::string& name);

/// For what is misspelt: the text for a user, with the nearest command or option if one is near.
[[nodiscard]] std::string parse_error_text(const CLI::ParseError& error, const CLI::App& app,
                                           const std::vector<std::string>& words);

}  // namespace precache::cli
