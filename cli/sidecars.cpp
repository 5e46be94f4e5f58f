// SPDX-License-Identifier: Apache-2.0
#include "cli/sidecars.hpp"

#include <algorithm>
#include <iterator>

#include "cli/say.hpp"
#include "formats/bytes/number_text.hpp"
#include "reader/shards/path_pattern.hpp"
#include "reader/shards/shard_listing.hpp"

namespace precache {
namespace {

using Paths = std::vector<std::filesystem::path>;

bool is_sidecar(const std::filesystem::path& path) {
  std::error_code ignored;
  return is_sidecar_name(path.filename().native()) &&
         std::filesystem::is_regular_file(path, ignored);
}

}  // namespace

Paths without_sidecars(const Paths& paths) {
  Paths taken;
  Paths left_out;
  for (const auto& path : paths) {
    std::error_code ignored;
    const bool is_pattern = !std::filesystem::exists(path, ignored);
    if (is_pattern) {
      const Paths files = expand_pattern(path);  // the reader leaves them out, too
      if (!std::ranges::all_of(files, is_sidecar)) {
        std::ranges::copy_if(files, std::back_inserter(left_out), is_sidecar);
      }
    }
    (is_pattern || !is_sidecar(path) ? taken : left_out).push_back(path);
  }
  if (taken.empty()) return paths;
  if (!left_out.empty()) {
    say("precache: left out {} that precache writes next to shards: {}{}\n",
        human::count(left_out.size(), "file"), left_out.front().filename().string(),
        left_out.size() > 1 ? " ..." : "");
  }
  return taken;
}

}  // namespace precache
