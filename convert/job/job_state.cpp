// SPDX-License-Identifier: Apache-2.0
#include "precache/convert/job_state.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <unordered_set>

#include "convert/job/out_folder.hpp"
#include "convert/job/parts.hpp"
#include "convert/job/work_folder.hpp"
#include "convert/job/work_names.hpp"
#include "formats/os/folder.hpp"

namespace precache {
namespace {

namespace fs = std::filesystem;

// A call for each shard would take minutes on a network file system.
constexpr std::size_t kMostTimes = 512;

/// Times of some of the shards that are done, in seconds.
std::vector<double> times_of(const fs::path& out, const std::vector<std::string>& done) {
  std::vector<double> times;
  const std::size_t step = std::max<std::size_t>(1, done.size() / kMostTimes);
  for (std::size_t i = 0; i < done.size(); i += step) {
    struct stat status {};
    if (::stat((out / done[i]).c_str(), &status) != 0) continue;
    times.push_back(static_cast<double>(mtime_ns(status)) * 1e-9);
  }
  std::ranges::sort(times);
  return times;
}

/// The later half of the shards tells the rate: the job may have rested before.
void find_rate(JobState& state, const std::vector<double>& times) {
  if (times.empty()) return;
  const double now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  state.seconds_since_last = std::max(0.0, now - times.back());
  const double seconds = times.back() - times[times.size() / 2];
  const std::size_t later = times.size() - 1 - times.size() / 2;
  if (later == 0 || seconds <= 0) return;
  const double scale = static_cast<double>(state.shards_done) / static_cast<double>(times.size());
  const double shards_per_second = static_cast<double>(later) * scale / seconds;
  const double samples = static_cast<double>(state.samples) / static_cast<double>(state.shards);
  state.samples_per_second = shards_per_second * samples;
  state.seconds_left = static_cast<double>(state.missing_shards.size()) / shards_per_second;
}

std::unordered_set<std::string> names_in(const fs::path& folder, Folder::Links links) {
  std::unordered_set<std::string> names;
  for (Folder::Entry& entry : Folder(folder, links).entries()) names.insert(std::move(entry.name));
  return names;
}

}  // namespace

std::string_view name(JobPhase phase) {
  switch (phase) {
    case JobPhase::kNotPrepared:
      return "not prepared";
    case JobPhase::kPrepared:
      return "prepared";
    case JobPhase::kRunning:
      return "running";
    case JobPhase::kPartsDone:
      return "parts done";
    case JobPhase::kComplete:
      return "complete";
  }
  return {};
}

JobState job_state(const fs::path& out, const std::string& split, std::uint64_t parts) {
  check_split_name(split);
  JobState state;
  std::string work_name = split;
  auto frozen = frozen_job(out, work_name);
  if (!frozen) {
    frozen = frozen_job(out, work_name = work_names::kSeveralSplits);
    const auto has_split = [&](const SplitEstimate& made) { return made.name == split; };
    if (frozen && std::ranges::none_of(frozen->facts.splits, has_split)) frozen.reset();
  }
  const auto finished = OutFolder(out, split).finished();
  if (finished && (!frozen || !frozen->is_replacing)) {
    state.phase = JobPhase::kComplete;
    state.samples = finished->samples;
    state.shards = state.shards_done = finished->shards.size();
    return state;
  }
  if (!frozen) return state;
  state.parts = parts != 0 ? parts : frozen->parts;
  for (const SplitEstimate& plan : frozen->facts.splits) {
    state.samples += plan.samples;
    state.shards += plan.shards;
  }
  // A result is written before its shard gets its name, and one alone may be of another job.
  const auto results = names_in(out / kWorkFolderName / work_name, Folder::Links::kRefuse);
  const auto shards = names_in(out, Folder::Links::kFollow);
  std::vector<std::string> done;
  for (const SplitEstimate& plan : frozen->facts.splits) {
    for (std::uint64_t number = 0; number < plan.shards; ++number) {
      std::string shard = work_names::shard(plan.name, number, frozen->facts.format);
      if (shards.contains(shard) && results.contains(shard + work_names::kResultEnding)) {
        done.push_back(std::move(shard));
      } else {
        state.missing_shards.push_back(number);
      }
    }
  }
  state.shards_done = done.size();
  if (state.parts != 0) state.missing_parts = parts_of(state.missing_shards, state.parts);
  state.phase = done.empty()                   ? JobPhase::kPrepared
                : state.missing_shards.empty() ? JobPhase::kPartsDone
                                               : JobPhase::kRunning;
  find_rate(state, times_of(out, done));
  return state;
}

}  // namespace precache
