// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace precache {

/// How far a build is that several machines do.
enum class JobPhase {
  kNotPrepared,  // no run has listed the source
  kPrepared,     // the plan is frozen, and no shard is done
  kRunning,      // some shards are done
  kPartsDone,    // all shards are done: it can be finished
  kComplete,     // the manifest is written
};

/// "not prepared", "prepared", "running", "parts done" or "complete".
[[nodiscard]] std::string_view name(JobPhase phase);

/// How far one split of a build is.
struct SplitState {
  std::string name;
  std::uint64_t samples = 0;  // of the plan, or of the finished split
  std::uint64_t shards = 0;
  std::uint64_t shards_done = 0;
  std::vector<std::uint64_t> missing_shards;  // their numbers
};

struct JobState {
  JobPhase phase = JobPhase::kNotPrepared;
  std::vector<SplitState> splits;  // none if no run has listed the source
  /// The sums of all splits.
  std::uint64_t samples = 0;
  std::uint64_t shards = 0;
  std::uint64_t shards_done = 0;
  /// How many parts `missing_parts` counts: as asked, else as many as ran last; 0: none ran.
  std::uint64_t parts = 0;
  std::vector<std::uint64_t> missing_parts;
  /// The rate, estimated from the most recent shards, and the time that the rest takes at this
  /// rate; none if too few shards are done.
  std::optional<double> samples_per_second;
  std::optional<double> seconds_left;
  /// Since the last shard was done, by the clock of this machine.
  std::optional<double> seconds_since_last;
};

/// The state of the job that makes `split`, other splits included. An empty name stands for a job
/// of several splits. Looks at the names in OUT and in its work folder, and at the times of a few
/// shards: neither the source nor the content of shards is read, so a run that finishes may still
/// find a shard damaged. Throws InvalidArgument if `split` is not a valid name, IoError,
/// CorruptData, and Unsupported for a job of another version.
[[nodiscard]] JobState job_state(const std::filesystem::path& out, const std::string& split,
                                 std::uint64_t parts = 0);

/// Sorted numbers as job arrays take them: "0,4,7-9".
[[nodiscard]] std::string ranges_text(const std::vector<std::uint64_t>& numbers);

}  // namespace precache
