// SPDX-License-Identifier: Apache-2.0
// The second half of a job's run: what it does once the plan is frozen.
#include <fmt/format.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "convert/job/parts.hpp"
#include "convert/job/shard_job.hpp"
#include "convert/job/work_names.hpp"
#include "formats/bytes/checked_math.hpp"
#include "formats/bytes/number_text.hpp"
#include "precache/convert/job_state.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

namespace fs = std::filesystem;

}  // namespace

std::uint64_t free_bytes_at(fs::path path) {
  path = fs::absolute(path);
  while (!fs::exists(path) && path != path.parent_path()) path = path.parent_path();
  struct statvfs status {};
  if (::statvfs(path.c_str(), &status) != 0) {
    throw IoError("cannot read the free space of", path, errno);
  }
  return checked_mul(status.f_bavail, status.f_frsize);
}

void ShardJob::check_space(std::uint64_t needed, std::uint64_t reusable) const {
  const std::uint64_t available = checked_add(free_bytes_at(request_.out), reusable);
  if (needed <= available) return;
  throw IoError("cannot write to", request_.out, ENOSPC,
                fmt::format("The shards need {}, {} are free. {}", size_text(needed),
                            size_text(available), request_.space_hint));
}

void ShardJob::find_pending() {
  const bool is_part = request_.step == JobStep::kPart;
  const std::uint64_t parts = is_part ? request_.share.count : 1;
  if (is_part) work_->note_parts(parts);
  std::uint64_t needed = 0;
  for (const JobSplit& split : splits_) {
    auto& pending = pending_.emplace_back();
    for (std::uint64_t shard = is_part ? request_.share.index : 0; shard < split.plan.shards();
         shard += parts) {
      ++report_.shards_planned;
      const fs::path path = shard_path(split, shard);
      if (const auto result = work_->usable_result(path, request_.overwrite)) {
        ++report_.shards_resumed;
        add(*result, split.name);
        continue;
      }
      progress_.samples_planned += split.plan.shard_records(shard);
      needed = checked_add(needed, shard_bytes(split, shard));
      pending.push_back({shard, work_->temporary(path), path});
    }
  }
  if (needed != 0) check_space(needed, 0);
}

void ShardJob::write_pending() {
  try {
    for (std::size_t i = 0; i < splits_.size(); ++i) {
      locks_.emplace(*work_);
      if (report_.status == JobStatus::kComplete) write(splits_[i], pending_[i]);
      write_made_by_others(i);
    }
  } catch (IoError& error) {
    error.add_hint(
        fmt::format("{} of {} shards are complete; run the same command again to continue.",
                    report_.shards_done, report_.shards_planned));
    throw;
  }
  if (report_.status == JobStatus::kComplete && report_.shards_done < report_.shards_planned) {
    report_.status = JobStatus::kInterrupted;
  }
}

/// Makes the shards that other processes were making but have not made by now: they may be dead or
/// stuck, and the bytes are the same.
void ShardJob::write_made_by_others(std::size_t split) {
  locks_.reset();
  std::vector<PendingShard> rest;
  for (PendingShard& shard : std::exchange(made_by_others_, {})) {
    if (const auto result = work_->usable_result(shard.final_path, request_.overwrite)) {
      ++report_.shards_resumed;
      add(*result, splits_[split].name);
      continue;
    }
    progress_.samples_planned += splits_[split].plan.shard_records(shard.number);
    rest.push_back(std::move(shard));
  }
  if (report_.status != JobStatus::kComplete || progress_.stop || rest.empty()) return;
  std::ranges::sort(rest, {}, &PendingShard::number);
  write(splits_[split], rest);
}

ShardCalls ShardJob::calls() {
  return {.begin =
              [&](const PendingShard& shard) {
                if (!locks_) return true;
                const bool is_free = locks_->take(shard.final_path);
                // Another attempt at the same part may have made it since this one began.
                const bool is_made = request_.step == JobStep::kPart &&
                                     work_->usable_result(shard.final_path, request_.overwrite);
                if (is_free && !is_made) return true;
                locks_->release(shard.final_path);
                const std::scoped_lock lock(mutex_);
                made_by_others_.push_back(shard);
                return false;
              },
          .save = [&](const PendingShard& shard,
                      const ShardResult& result) { work_->save_result(shard.final_path, result); },
          .done =
              [&](const PendingShard& shard, const ShardResult& result) {
                if (locks_) locks_->release(shard.final_path);
                const std::scoped_lock lock(mutex_);
                add(result, work_names::split_of(shard.final_path.filename().string()).value());
              }};
}

void ShardJob::add(const ShardResult& result, const std::string& split) {
  SplitReport& made = report_of(split);
  ++made.shards_done;
  made.samples += result.entry.samples;
  made.bytes += result.entry.bytes;
  made.skipped_count += result.skipped.size();
  ++report_.shards_done;
  report_.samples += result.entry.samples;
  report_.bytes += result.entry.bytes;
  report_.damaged += result.damaged;
  report_.turned += result.turned;
  for (SkippedSample skipped : result.skipped) {
    skipped.split = split;
    report_.skipped.push_back(std::move(skipped));
  }
  report_.skipped_count = report_.skipped.size();
}

SplitResults ShardJob::results(const JobSplit& split, SkippedReport& skipped) {
  SplitResults all = collect_results(
      *work_, split.plan.shards(), [&](std::uint64_t shard) { return shard_path(split, shard); },
      skipped);
  if (!all.missing.empty()) refuse_missing(all, split);
  if (!source_.is_stream()) remember_plan(shard_path(split, 0), work_->plan());
  if (request_.step != JobStep::kFinish) return all;
  SplitReport& made = report_of(split.name);
  made.shards_done = all.shards.size();
  made.samples = all.samples;
  made.bytes = all.bytes;
  made.skipped_count = all.skipped_count;
  report_.shards_planned += all.shards.size();
  report_.shards_done += all.shards.size();
  report_.shards_resumed += all.shards.size();
  report_.samples += all.samples;
  report_.bytes += all.bytes;
  report_.damaged += all.damaged;
  report_.turned += all.turned;
  report_.skipped_count += all.skipped_count;
  for (SkippedSample sample : all.first_skipped) {
    sample.split = split.name;
    report_.skipped.push_back(std::move(sample));
  }
  return all;
}

void ShardJob::refuse_missing(const SplitResults& made, const JobSplit& split) {
  const fs::path first = shard_path(split, made.missing.front());
  if (request_.step != JobStep::kFinish) {
    throw IoError("the finished shard is missing:", first, 0, "Run the same command again.");
  }
  const std::uint64_t noted = work_->parts();
  const std::uint64_t parts =
      request_.parts != 0 ? request_.parts : std::max<std::uint64_t>(1, noted);
  throw InvalidArgument(
      fmt::format(
          "{} of {} shards are missing in '{}'; the first is number {}. Missing parts of {}: "
          "{}",
          made.missing.size(), split.plan.shards(), request_.out.string(), made.missing.front(),
          parts, ranges_text(parts_of(made.missing, parts))),
      "Run these parts, then set `finish` again.");
}

bool ShardJob::accept(const JobSplit& /*split*/, SplitResults& /*made*/, SkippedReport& skipped) {
  skipped.publish();
  return true;
}

bool ShardJob::publish_all() {
  std::map<std::string, SplitEntry> entries;
  for (const JobSplit& split : splits_) {
    SkippedReport skipped = out(split.name).skipped_report();
    SplitResults made = results(split, skipped);
    if (!accept(split, made, skipped)) return false;
    SplitEntry& entry = entries[split.name] = planned_entry(split);
    entry.samples = made.samples;
    entry.skipped += made.skipped_count;
    if (entry.content_fingerprint.empty()) entry.content_fingerprint = made.content_fingerprint;
    entry.shards = std::move(made.shards);
    if (!split.framing) continue;
    entry.columns = split.framing->named();
    SharedColumns last;  // of most shards
    for (ShardEntry& shard : entry.shards) {
      ShardColumns columns = split.framing->columns(shard.samples);
      if (*last != columns) last = std::move(columns);
      shard.columns = last;
    }
  }
  publish(std::move(entries));
  return true;
}

void ShardJob::publish(std::map<std::string, SplitEntry> entries) {
  Manifest manifest = dataset();
  manifest.splits = std::move(entries);
  outs_.front().publish(std::move(manifest));
}

}  // namespace precache
