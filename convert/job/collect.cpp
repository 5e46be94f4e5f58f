// SPDX-License-Identifier: Apache-2.0
#include "convert/job/collect.hpp"

#include <oneapi/tbb/parallel_for.h>

#include <algorithm>

#include "convert/job/same_source.hpp"

namespace precache {
namespace {

constexpr std::uint64_t kShardsAtOnce = 4096;
constexpr std::size_t kMostSkippedKept = 1000;

}  // namespace

SplitResults collect_results(const WorkFolder& work, std::uint64_t shards,
                             const std::function<std::filesystem::path(std::uint64_t)>& shard_path,
                             SkippedReport& skipped) {
  SplitResults all;
  std::uint64_t content = 0;
  for (std::uint64_t begin = 0; begin < shards; begin += kShardsAtOnce) {
    const std::uint64_t count = std::min(kShardsAtOnce, shards - begin);
    std::vector<std::optional<ShardResult>> results(count);
    tbb::parallel_for(std::uint64_t{0}, count, [&](std::uint64_t i) {
      results[i] = work.published_result(shard_path(begin + i));
    });
    for (std::uint64_t i = 0; i < count; ++i) {
      if (!results[i]) all.missing.push_back(begin + i);
      if (!results[i] || !all.missing.empty()) continue;
      ShardResult& result = *results[i];
      all.samples += result.entry.samples;
      all.bytes += result.entry.bytes;
      all.damaged += result.damaged;
      all.turned += result.turned;
      content += result.content;
      all.skipped_count += result.skipped.size();
      for (SkippedSample& sample : result.skipped) {
        skipped.add(sample);
        if (all.first_skipped.size() == kMostSkippedKept) continue;
        all.first_skipped.push_back(std::move(sample));
      }
      all.shards.push_back(std::move(result.entry));
    }
  }
  all.content_fingerprint = content_fingerprint(content);
  return all;
}

}  // namespace precache
