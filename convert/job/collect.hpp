// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "convert/job/skipped_report.hpp"
#include "convert/job/work_folder.hpp"

namespace precache {

/// The shards of a split, as their results have them.
struct SplitResults {
  std::vector<ShardEntry> shards;  // without columns
  std::uint64_t samples = 0;
  std::uint64_t bytes = 0;
  std::uint64_t damaged = 0;
  std::uint64_t turned = 0;
  std::string content_fingerprint;
  std::uint64_t skipped_count = 0;
  std::vector<SkippedSample> first_skipped;  // a thousand of them
  std::vector<std::uint64_t> missing;        // numbers of shards; nothing else counts then
};

/// Looks at each shard and its result once, on all threads of the caller's arena, and adds the
/// skipped samples to the report in the order of the plan. Throws as WorkFolder::published_result()
/// does.
[[nodiscard]] SplitResults collect_results(
    const WorkFolder& work, std::uint64_t shards,
    const std::function<std::filesystem::path(std::uint64_t)>& shard_path, SkippedReport& skipped);

}  // namespace precache
