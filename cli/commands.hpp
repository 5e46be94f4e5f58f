// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "cli/events.hpp"

namespace precache {

/// Runs the chosen subcommand, after the whole command line was read.
using Action = std::function<ExitCode()>;

/// This program, for options `helper`: it reads HDF5 files in a separate process.
inline constexpr const char* kOwnProgram = "/proc/self/exe";

/// Each adds a subcommand, which sets `action` if the user chose it.
void add_bench(CLI::App& app, Action& action);
void add_build(CLI::App& app, Action& action);
void add_cluster(CLI::App& app, Action& action);
void add_convert(CLI::App& app, Action& action);
void add_index(CLI::App& app, Action& action);
void add_inspect(CLI::App& app, Action& action);
void add_pack(CLI::App& app, Action& action);
void add_verify(CLI::App& app, Action& action);

}  // namespace precache
