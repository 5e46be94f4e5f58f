// SPDX-License-Identifier: Apache-2.0
#include "cli/shard_paths.hpp"

#include <algorithm>
#include <iterator>

#include "cli/add_option.hpp"
#include "cli/say.hpp"
#include "formats/bytes/number_text.hpp"
#include "reader/shards/path_pattern.hpp"
#include "reader/shards/shard_listing.hpp"

namespace precache {
namespace {

using Paths = std::vector<std::filesystem::path>;

bool is_sidecar(const std::filesystem::path& path) {
  std::error_code unused;
  return is_sidecar_name(path.filename().native()) &&
         std::filesystem::is_regular_file(path, unused);
}

}  // namespace

Paths without_sidecars(const Paths& paths) {
  Paths taken;
  Paths ignored_paths;
  for (const auto& path : paths) {
    std::error_code unused;
    const bool is_pattern = !std::filesystem::exists(path, unused);
    if (is_pattern) {
      const Paths files = expand_pattern(path);  // the reader ignores them too
      if (!std::ranges::all_of(files, is_sidecar)) {
        std::ranges::copy_if(files, std::back_inserter(ignored_paths), is_sidecar);
      }
    }
    (is_pattern || !is_sidecar(path) ? taken : ignored_paths).push_back(path);
  }
  if (taken.empty()) return paths;
  if (!ignored_paths.empty()) {
    say("precache: ignored {} that precache writes next to shards: {}{}\n",
        human::count(ignored_paths.size(), "file"), ignored_paths.front().filename().string(),
        ignored_paths.size() > 1 ? " ..." : "");
  }
  return taken;
}

void add_shard_paths(CLI::App& app, ShardPaths& command, std::optional<std::string>& split) {
  cli::begin_group(app, "Input");
  cli::add_argument(app, "PATH",
                    "Dataset folders, shards of any origin, or quoted patterns: 'train-*.tar', "
                    "'train-{000000..000012}.tar'",
                    command.paths, "...");
  cli::add_text(app, "--split", "NAME [all]", "Only this split of a dataset", split);
  cli::begin_group(app, "Run");
  app.add_flag("--quiet", command.quiet, "Show no progress");
  app.add_flag("--json", command.json, "Print the result as JSON");
}

}  // namespace precache
