// SPDX-License-Identifier: Apache-2.0
#include "convert/job/shard_job.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "convert/source/source_json.hpp"
#include "convert/source/source_path.hpp"
#include "formats/bytes/checked_math.hpp"
#include "formats/bytes/number_text.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

namespace fs = std::filesystem;

/// What the file system of `path`, or of the folder where it will be made, has left for us.
std::uint64_t free_bytes(fs::path path) {
  path = fs::absolute(path);
  while (!fs::exists(path) && path != path.parent_path()) path = path.parent_path();
  struct statvfs status {};
  if (::statvfs(path.c_str(), &status) != 0) {
    throw IoError("cannot look at the file system of", path, errno);
  }
  return checked_mul(status.f_bavail, status.f_frsize);
}

/// What a file takes on its disk; 0 if there is none.
std::uint64_t allocated_bytes(const fs::path& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 ? static_cast<std::uint64_t>(status.st_blocks) * 512
                                            : 0;
}

/// Throws IoError if shards of `needed` bytes do not fit. `reusable` is what they get of files that
/// they replace.
void check_space(const JobRequest& request, std::uint64_t needed, std::uint64_t reusable) {
  const std::uint64_t available = checked_add(free_bytes(request.out), reusable);
  if (needed <= available) return;
  throw IoError("cannot write to", request.out, ENOSPC,
                fmt::format("The shards need {}, {} are free. {}", size_text(needed),
                            size_text(available), request.space_hint));
}

}  // namespace

void check_job_folders(const fs::path& source, const char* source_field, const fs::path& out) {
  if (source.empty() || out.empty()) {
    throw InvalidArgument(fmt::format("`{}` and `out` must not be empty", source_field));
  }
  std::error_code error;
  if (fs::exists(out, error) && !fs::is_directory(out, error)) {
    throw IoError("cannot write to", out, ENOTDIR, "`out` must be a folder; it is made if needed.");
  }
}

ShardJob::ShardJob(JobRequest request, JobProgress& progress, JobReport& report)
    : request_(std::move(request)), progress_(progress), report_(report) {
  for (const std::string& split : request_.splits) check_split_name(split);
}

void ShardJob::run() {
  work_.emplace(request_.out, request_.work_name, request_.part_count != 0);
  open_out();
  try {
    for (const std::string& split : request_.splits) {
      if (!is_finished(split) || is_replaced(split)) missing_.push_back({split, nullptr, {}});
    }
    if (missing_.empty()) return report_finished();
    prepare();
  } catch (const UnpackingStopped&) {
    report_.status = JobStatus::kInterrupted;
    return;
  }
  note_plan();
  find_pending();
  write_pending();
  if (report_.status != JobStatus::kComplete) return;
  if (request_.part_count != 0) {
    report_.status = JobStatus::kPartDone;
  } else if (publish(missing_)) {
    work_->remove();
  }
}

void ShardJob::plan_only() {
  open_out();
  std::atomic<std::uint64_t> unpacked = 0;
  Unpacker unpacker(fs::temp_directory_path(), {unpacked, progress_.stop});
  make_plan(list(unpacker));
  for (const JobSplit& split : plans()) {
    if (is_finished(split.name) && !is_replaced(split.name)) check_finished(split);
  }
  note_plan();
}

void ShardJob::open_out() {
  for (const std::string& split : request_.splits) outs_.emplace_back(request_.out, split);
  check_out();
}

OutFolder& ShardJob::out(const std::string& split) {
  return outs_[static_cast<std::size_t>(std::ranges::find(request_.splits, split) -
                                        request_.splits.begin())];
}

bool ShardJob::is_finished(const std::string& split) { return out(split).finished().has_value(); }

bool ShardJob::is_replaced(const std::string& split) {
  return request_.overwrite || is_replacing(split);
}

bool ShardJob::is_replacing(const std::string& split) {
  return work_ && work_->is_replacing(
                      [&](const std::string& file) { return out(split).is_shard_name(file); });
}

fs::path ShardJob::shard_path(const JobSplit& split, std::uint64_t shard) {
  return out(split.name).shard_path(shard, extension(format()));
}

/// The same request once more changes nothing; another one is refused.
void ShardJob::report_finished() {
  Unpacker unpacker(work_->folder_for_copies(), {progress_.bytes_unpacked, progress_.stop});
  make_plan(list(unpacker));
  for (const JobSplit& split : plans()) {
    check_finished(split);
    const FinishedSplit finished = *out(split.name).finished();
    const auto reader = crc_reader(split);
    report_.compared = !reader
                           ? SourceComparison::kManifest
                           : compare_content({.first_shard = request_.out / finished.first_shard,
                                              .fingerprint = finished.content_fingerprint,
                                              .plan = plan_identity(identity(), source()),
                                              .samples = split.plan->records(),
                                              .has_times = !source().is_stream(),
                                              .reader = reader},
                                             progress_);
    report_.samples += finished.samples;
    report_.skipped_count += finished.skipped;
    report_.bytes += finished.bytes;
    report_.shards_done += finished.shards.size();
  }
  report_.shards_planned = report_.shards_resumed = report_.shards_done;
  report_.status = JobStatus::kAlreadyComplete;
  note_plan();
  work_->remove();  // a run that was killed after it wrote the manifest has left it
}

/// Takes up an unfinished job, or begins one. What is replaced is there until all that can be
/// checked before the first sample was found to be right.
void ShardJob::prepare() {
  const File alone = work_->lock_preparation();
  if (work_->is_prepared() && !request_.overwrite) {
    load();
  } else {
    begin();
  }
  const auto all = plans();
  for (JobSplit& split : missing_) split = *std::ranges::find(all, split.name, &JobSplit::name);
  if (work_->replaced().empty()) return;
  for (const JobSplit& split : missing_) out(split.name).discard_split(work_->replaced());
  work_->note_replaced();
}

void ShardJob::load() {
  make_plan(work_->load(identity(), request_.source));
  check_plan(false);
}

void ShardJob::begin() {
  if (request_.finish) {
    throw InvalidArgument(fmt::format("there is nothing to finish in '{}'", request_.out.string()),
                          "Run all parts with the same options first.");
  }
  const auto listed = replaceable_shards(request_.overwrite);
  Unpacker unpacker(work_->folder_for_copies(), {progress_.bytes_unpacked, progress_.stop});
  make_plan(list(unpacker));
  check_plan(true);
  check_not_in_out(source().shard_files(), request_.out);
  if (can_resume()) {
    try {
      return load();  // an overwriting run was interrupted and would make the same shards again
    } catch (const CorruptData&) {
      // Then it starts over.
    }
  }
  const std::uint64_t copies = source().unpacked_bytes();  // are there already
  std::uint64_t needed = copies;
  for (const JobSplit& split : plans()) {
    if (std::ranges::find(missing_, split.name, &JobSplit::name) == missing_.end()) continue;
    for (std::uint64_t shard = 0; shard < split.plan->shards(); ++shard) {
      needed = checked_add(needed, split.shard_bytes(shard));
    }
  }
  std::uint64_t reusable = copies;
  for (const auto& shard : listed) reusable += allocated_bytes(request_.out / shard.name);
  check_space(request_, needed, reusable);
  work_->freeze(identity(), source(), request_.source, listed);
  work_->take_over_replaced();
  unpacker.keep();
}

/// Not if the job is done and something else stands there now, nor for a stream, whose content no
/// plan knows.
bool ShardJob::can_resume() {
  return std::ranges::none_of(missing_,
                              [&](const JobSplit& split) {
                                return is_finished(split.name) && !is_replacing(split.name);
                              }) &&
         !source().is_stream() && work_->frozen_plan() == plan_identity(identity(), source());
}

std::vector<ReplacedFile> ShardJob::replaceable_shards(bool overwrite) {
  std::vector<ReplacedFile> listed;
  for (const JobSplit& split : missing_) {
    std::ranges::move(out(split.name).replaceable_shards(overwrite), std::back_inserter(listed));
  }
  return listed;
}

void ShardJob::start_over() {
  work_->freeze(identity(), source(), request_.source, replaceable_shards(true));
}

void ShardJob::find_pending() {
  const std::uint64_t parts = std::max<std::uint64_t>(1, request_.part_count);
  std::uint64_t needed = 0;
  std::uint64_t missing = 0;
  for (const JobSplit& split : missing_) {
    auto& pending = pending_.emplace_back();
    for (std::uint64_t shard = request_.part_index; shard < split.plan->shards(); shard += parts) {
      ++report_.shards_planned;
      const fs::path path = shard_path(split, shard);
      if (const auto result = work_->usable_result(path, request_.overwrite)) {
        ++report_.shards_resumed;
        add(*result);
        continue;
      }
      progress_.samples_planned += split.plan->shard_records(shard);
      needed = checked_add(needed, split.shard_bytes(shard));
      pending.push_back({shard, work_->temporary(path), path});
    }
    missing += pending.size();
    if (!request_.finish || pending.empty()) continue;
    throw InvalidArgument(
        fmt::format("{} of {} shards are missing in '{}', the first is number {}", missing,
                    report_.shards_planned, request_.out.string(), pending.front().number),
        "Run the parts that have them, then set `finish` again.");
  }
  if (missing != 0) check_space(request_, needed, 0);
}

void ShardJob::write_pending() {
  try {
    for (std::size_t i = 0; i < missing_.size(); ++i) {
      if (report_.status == JobStatus::kComplete) write(missing_[i], pending_[i]);
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

ShardCalls ShardJob::calls() {
  return {.save = [&](const PendingShard& shard,
                      const ShardResult& result) { work_->save_result(shard.final_path, result); },
          .done =
              [&](const PendingShard&, const ShardResult& result) {
                const std::scoped_lock lock(mutex_);
                add(result);
              }};
}

void ShardJob::add(const ShardResult& result) {
  ++report_.shards_done;
  report_.samples += result.entry.samples;
  report_.bytes += result.entry.bytes;
  report_.damaged += result.damaged;
  report_.skipped.insert(report_.skipped.end(), result.skipped.begin(), result.skipped.end());
  report_.skipped_count = report_.skipped.size();
}

SplitResults ShardJob::results(const JobSplit& split) {
  SplitResults all;
  std::uint64_t content = 0;
  for (std::uint64_t shard = 0; shard < split.plan->shards(); ++shard) {
    ShardResult result = work_->published_result(shard_path(split, shard));
    all.samples += result.entry.samples;
    content += result.content;
    all.shards.push_back(std::move(result.entry));
    std::ranges::move(result.skipped, std::back_inserter(all.skipped));
  }
  all.content_fingerprint = content_fingerprint(content);
  if (!source().is_stream()) remember_plan(shard_path(split, 0), work_->plan());
  return all;
}

void ShardJob::fill(JobEstimate& estimate) const {
  for (const JobSplit& split : plans()) {
    const Plan& plan = *split.plan;
    SplitEstimate made{split.name, plan.records(), plan.shards(), plan.records(), 0};
    for (std::uint64_t shard = 0; shard < plan.shards(); ++shard) {
      const std::uint64_t records = plan.shard_records(shard);
      made.smallest_shard_samples = std::min(made.smallest_shard_samples, records);
      made.largest_shard_samples = std::max(made.largest_shard_samples, records);
      estimate.bytes_needed = checked_add(estimate.bytes_needed, split.shard_bytes(shard));
    }
    estimate.samples += made.samples;
    estimate.shards += made.shards;
    estimate.splits.push_back(std::move(made));
  }
  // The copies are there by now, so what they take counts as free, too.
  estimate.bytes_unpacked = source().unpacked_bytes();
  estimate.bytes_needed = checked_add(estimate.bytes_needed, estimate.bytes_unpacked);
  estimate.bytes_free = checked_add(free_bytes(request_.out), estimate.bytes_unpacked);
}

}  // namespace precache
