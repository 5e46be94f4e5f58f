// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "convert/job/plan.hpp"
#include "convert/job/record_input.hpp"
#include "convert/job/shard_builder.hpp"
#include "formats/shard/framing.hpp"
#include "precache/convert/job.hpp"

namespace precache {

/// A shard that is to be written.
struct PendingShard {
  std::uint64_t number = 0;
  std::filesystem::path temporary;
  std::filesystem::path final_path;
};

/// What all records of a run have in common.
struct ShardRunInput {
  const RecordInput& samples;
  const Plan& plan;
  const Framing& framing;
  std::uint64_t tensor_bytes;
  /// The run ends early when more samples than this were rejected, those of `rejected_before`
  /// included.
  std::uint64_t allowed_rejections;
  std::uint64_t rejected_before;
  /// With more than one, threads share the shards among them: for work that is little more than
  /// writing, as those who write to one file wait for one another. A run that is cut short loses
  /// what it has of these shards.
  std::size_t shards_at_once = 1;
};

struct ShardRunOutcome {
  std::vector<SkippedSample> skipped;  // by this run, in the order of the plan
  std::uint64_t converted = 0;
  bool too_many_rejections = false;
  bool stopped = false;
};

/// What a run calls for each shard, from one thread at a time.
struct ShardCalls {
  using Call = std::function<void(const PendingShard&, const ShardResult&)>;
  Call save;  // the shard is complete and synced, and gets its final name afterwards
  Call done;  // it has it
};

/// Converts the samples of the pending shards on all threads of the caller's arena; empty shards
/// first.
[[nodiscard]] ShardRunOutcome run_shards(const ShardRunInput& input,
                                         const std::vector<PendingShard>& pending,
                                         JobProgress& progress, const ShardCalls& calls);

}  // namespace precache
