// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace precache {

/// Shared by `inspect` and `verify`.
struct ShardPaths {
  std::vector<std::filesystem::path> paths;
  bool quiet = false;
  bool json = false;
};

void add_shard_paths(CLI::App& app, ShardPaths& command, std::optional<std::string>& split);

/// The shards and datasets among several paths, as the shell expands `OUT/*`. Says on stderr which
/// other files of precache it ignored. A single path is always taken.
[[nodiscard]] std::vector<std::filesystem::path> without_sidecars(
    const std::vector<std::filesystem::path>& paths);

}  // namespace precache
