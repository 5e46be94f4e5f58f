// SPDX-License-Identifier: Apache-2.0
#include "precache/convert/job_state.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <unordered_set>

#include "convert/job/out_folder.hpp"
#include "convert/job/parts.hpp"
#include "convert/job/work_folder.hpp"
#include "convert/job/work_names.hpp"
#include "formats/os/folder.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

namespace fs = std::filesystem;

// A call for each shard would take minutes on a network file system.
constexpr std::size_t kMostTimes = 512;

// A second look finds the manifest, unless another job begins and ends meanwhile.
constexpr int kMostLooks = 5;

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
  state.seconds_left = static_cast<double>(state.shards - state.shards_done) / shards_per_second;
}

std::unordered_set<std::string> names_in(const fs::path& folder, Folder::Links links) {
  std::unordered_set<std::string> names;
  for (Folder::Entry& entry : Folder(folder, links).entries()) names.insert(std::move(entry.name));
  return names;
}

void add(JobState& state, SplitState split) {
  state.samples += split.samples;
  state.shards += split.shards;
  state.shards_done += split.shards_done;
  state.splits.push_back(std::move(split));
}

SplitState finished_state(const std::string& name, const SplitEntry& entry) {
  return {name, entry.samples, entry.shards.size(), entry.shards.size(), {}};
}

/// `split` as the manifest lists it. If it is empty, all splits of the job, or without a job all of
/// the dataset. None if one is not finished.
std::vector<SplitState> finished_splits(const fs::path& out, const std::string& split,
                                        const std::optional<FrozenJob>& frozen) {
  const OutFolder folder(out, split);
  if (!split.empty()) {
    const auto entry = folder.finished();
    return entry ? std::vector{finished_state(split, *entry)} : std::vector<SplitState>();
  }
  std::vector<SplitState> splits;
  if (!folder.manifest()) return splits;
  const auto& entries = folder.manifest()->splits;
  if (!frozen) {
    for (const auto& [name, entry] : entries) splits.push_back(finished_state(name, entry));
    return splits;
  }
  for (const SplitEstimate& plan : frozen->facts.splits) {
    const auto entry = entries.find(plan.name);
    if (entry == entries.end()) return {};
    splits.push_back(finished_state(plan.name, entry->second));
  }
  return splits;
}

/// Looks once. A step that ends meanwhile may remove files between two calls.
JobState look_at_job(const fs::path& out, const std::string& split, std::uint64_t parts) {
  JobState state;
  std::string work_name = split;
  auto frozen = split.empty() ? std::nullopt : frozen_job(out, work_name);
  if (!frozen) {
    frozen = frozen_job(out, work_name = work_names::kSeveralSplits);
    const auto has_split = [&](const SplitEstimate& made) { return made.name == split; };
    if (frozen && !split.empty() && std::ranges::none_of(frozen->facts.splits, has_split)) {
      frozen.reset();
    }
  }
  if (!frozen || !frozen->is_replacing) {
    for (SplitState& finished : finished_splits(out, split, frozen)) {
      add(state, std::move(finished));
    }
    if (!state.splits.empty()) {
      state.phase = JobPhase::kComplete;
      return state;
    }
  }
  if (!frozen) return state;
  state.parts = parts != 0 ? parts : frozen->parts;
  // A result is written before its shard gets its name, and one alone may be of another job.
  const auto results = names_in(out / kWorkFolderName / work_name, Folder::Links::kRefuse);
  const auto shards = names_in(out, Folder::Links::kFollow);
  const fs::path job = out / kWorkFolderName / work_name / work_names::kJob;
  // It goes first when a job ends, so the names were all there if it still is.
  if (!fs::exists(job)) throw IoError("cannot read", job, ENOENT);
  std::vector<std::string> done;
  std::vector<std::uint64_t> missing;
  for (const SplitEstimate& plan : frozen->facts.splits) {
    SplitState now{plan.name, plan.samples, plan.shards, 0, {}};
    for (std::uint64_t number = 0; number < plan.shards; ++number) {
      std::string shard = work_names::shard(plan.name, number, frozen->facts.format);
      if (shards.contains(shard) && results.contains(shard + work_names::kResultEnding)) {
        done.push_back(std::move(shard));
        ++now.shards_done;
      } else {
        now.missing_shards.push_back(number);
        missing.push_back(number);
      }
    }
    add(state, std::move(now));
  }
  if (state.parts != 0) state.missing_parts = parts_of(missing, state.parts);
  state.phase = done.empty()      ? JobPhase::kPrepared
                : missing.empty() ? JobPhase::kPartsDone
                                  : JobPhase::kRunning;
  find_rate(state, times_of(out, done));
  return state;
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
  if (!split.empty()) check_split_name(split);
  for (int look = 1;; ++look) {
    try {
      return look_at_job(out, split, parts);
    } catch (const IoError& error) {
      const bool is_gone = error.code() == ENOENT || error.code() == ESTALE;
      if (!is_gone || look == kMostLooks) throw;
    }
  }
}

}  // namespace precache
