// SPDX-License-Identifier: Apache-2.0
#include "convert/job/shard_job.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <nlohmann/json.hpp>

#include "convert/job/differences.hpp"
#include "convert/job/work_names.hpp"
#include "convert/source/source_json.hpp"
#include "convert/source/source_path.hpp"
#include "formats/bytes/checked_math.hpp"
#include "formats/bytes/number_text.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

namespace fs = std::filesystem;

/// The free space of the file system at `path`, or at the folder where it will be created.
std::uint64_t free_bytes(fs::path path) {
  path = fs::absolute(path);
  while (!fs::exists(path) && path != path.parent_path()) path = path.parent_path();
  struct statvfs status {};
  if (::statvfs(path.c_str(), &status) != 0) {
    throw IoError("cannot read the free space of", path, errno);
  }
  return checked_mul(status.f_bavail, status.f_frsize);
}

/// Throws IoError if shards of `needed` bytes do not fit. `reusable` is the space of files that
/// they replace.
void check_space(const JobRequest& request, std::uint64_t needed, std::uint64_t reusable) {
  const std::uint64_t available = checked_add(free_bytes(request.out), reusable);
  if (needed <= available) return;
  throw IoError("cannot write to", request.out, ENOSPC,
                fmt::format("The shards need {}, {} are free. {}", size_text(needed),
                            size_text(available), request.space_hint));
}

}  // namespace

ShardJob::ShardJob(JobRequest request, JobProgress& progress, JobReport& report,
                   JobEstimate& preview)
    : request_(std::move(request)), progress_(progress), report_(report), preview_(preview) {
  for (const std::string& split : request_.splits) check_split_name(split);
}

void ShardJob::run() {
  work_.emplace(request_.out, request_.work_name, request_.part_count != 0);
  open_out();
  try {
    for (const std::string& split : request_.splits) {
      if (!is_finished(split) || is_replaced(split)) missing_.insert(split);
    }
    if (missing_.empty()) return report_finished();
    prepare();
  } catch (const UnpackingStopped&) {
    report_.status = JobStatus::kInterrupted;
    return;
  }
  note_plan();
  std::erase_if(splits_, [&](const JobSplit& split) { return !missing_.contains(split.name); });
  find_pending();
  write_pending();
  if (report_.status != JobStatus::kComplete) return;
  if (request_.part_count != 0) {
    report_.status = JobStatus::kPartDone;
  } else if (publish_all()) {
    work_->remove();
  }
}

void ShardJob::plan_only() {
  open_out();
  std::atomic<std::uint64_t> unpacked = 0;
  Unpacker unpacker(fs::temp_directory_path(), {unpacked, progress_.stop});
  plan(list(unpacker));
  note_plan();
}

void ShardJob::open_out() {
  for (const std::string& split : request_.splits) outs_.emplace_back(request_.out, split);
  check_dataset(false);
}

OutFolder& ShardJob::out(const std::string& split) {
  return outs_[static_cast<std::size_t>(std::ranges::find(request_.splits, split) -
                                        request_.splits.begin())];
}

bool ShardJob::is_finished(const std::string& split) { return out(split).finished().has_value(); }

bool ShardJob::is_replaced(const std::string& split) {
  return request_.overwrite || (work_ && work_->is_replacing(split));
}

fs::path ShardJob::shard_path(const JobSplit& split, std::uint64_t shard) const {
  return request_.out / work_names::shard(split.name, shard, request_.format);
}

std::uint64_t ShardJob::shard_bytes(const JobSplit& split, std::uint64_t shard) const {
  return split.framing->shard_bytes(split.plan.shard_records(shard));
}

void ShardJob::plan(Source source) {
  source_ = std::move(source);
  splits_ = make_plan();
  check_dataset(true);
  for (const JobSplit& split : splits_) {
    if (is_finished(split.name) && !is_replaced(split.name)) check_finished(split);
  }
}

/// Refuses to add splits to a dataset that does not fit.
void ShardJob::check_dataset(bool with_classes) {
  const auto& found = outs_.front().manifest();
  if (!found || request_.is_encoded || std::ranges::all_of(found->splits, [&](const auto& split) {
        return std::ranges::find(request_.splits, split.first) != request_.splits.end();
      })) {
    return;
  }
  const Manifest planned = dataset();
  const std::string text = dataset_differences(*found, planned);
  if (!text.empty()) {
    throw InvalidArgument(
        fmt::format("'{}' holds another dataset: {}", request_.out.string(), text),
        "All splits of a dataset have one format and recipe. Choose another `out`; `overwrite` "
        "replaces a split if it is the only one.");
  }
  if (!with_classes || found->classes == planned.classes) return;
  throw InvalidArgument(
      fmt::format("'{}' has splits with other classes: {}", request_.out.string(),
                  differences({{"classes", found->classes}}, {{"classes", planned.classes}})),
      "All splits of a dataset have the same classes. Choose another `out`.");
}

std::string ShardJob::manifest_json(const std::string& split, const SplitEntry& entry) const {
  Manifest manifest = dataset();
  manifest.splits.emplace(split, entry);
  return manifest.to_json();
}

void ShardJob::check_finished(const JobSplit& split) {
  SplitEntry planned = planned_entry(split);
  planned.samples = split.plan.records();
  for (std::uint64_t shard = 0; shard < split.plan.shards(); ++shard) {
    ShardEntry& entry = planned.shards.emplace_back();
    entry.samples = split.plan.shard_records(shard);
    if (split.framing) entry.columns = split.framing->columns(entry.samples);
  }
  const auto compare = [&](const std::string& source_text) {
    return split_differences(out(split.name).manifest_json(), manifest_json(split.name, planned),
                             split.name, request_.may_skip, source_text);
  };
  if (compare("the source differs").empty()) return;
  throw InvalidArgument(
      fmt::format("'{}' already holds a finished split '{}' that differs: {}",
                  request_.out.string(), split.name, compare(source_difference())),
      request_.finished_hint);
}

/// Reports that the same request was fulfilled before; plan() refuses any other.
void ShardJob::report_finished() {
  Unpacker unpacker(work_->make_folder(), {progress_.bytes_unpacked, progress_.stop});
  plan(list(unpacker));
  for (const JobSplit& split : splits_) {
    const SplitEntry finished = *out(split.name).finished();
    const auto reader = crc_reader(split);
    report_.compared =
        !reader ? SourceComparison::kManifest
                : compare_content({.first_shard = request_.out / finished.shards.at(0).file,
                                   .fingerprint = finished.content_fingerprint,
                                   .plan = plan_identity(identity().dump(), source_),
                                   .samples = split.plan.records(),
                                   .has_times = !source_.is_stream(),
                                   .reader = reader},
                                  progress_);
    report_.samples += finished.samples;
    report_.skipped_count += finished.skipped;
    for (const ShardEntry& shard : finished.shards) report_.bytes += shard.bytes;
    report_.shards_done += finished.shards.size();
  }
  report_.shards_planned = report_.shards_resumed = report_.shards_done;
  report_.status = JobStatus::kAlreadyComplete;
  note_plan();
  work_->remove();  // left by a run that was killed after it wrote the manifest
}

/// Continues an unfinished job, or begins one. Files that are replaced stay until everything was
/// checked that can be checked before the first sample.
void ShardJob::prepare() {
  const File alone = work_->lock_preparation();
  work_->is_prepared() && !request_.overwrite ? load() : begin();
  if (work_->replaced().empty()) return;
  for (const std::string& split : missing_) out(split).discard_split(work_->replaced());
  work_->note_replaced();
}

void ShardJob::load() {
  plan(work_->load(identity().dump(), request_.source));
  check_plan(false);
}

void ShardJob::begin() {
  if (request_.finish) {
    throw InvalidArgument(fmt::format("there is nothing to finish in '{}'", request_.out.string()),
                          "Run all parts with the same options first.");
  }
  const auto listed = replaceable_shards(request_.overwrite);
  Unpacker unpacker(work_->make_folder(), {progress_.bytes_unpacked, progress_.stop});
  plan(list(unpacker));
  check_plan(true);
  check_not_in_out(source_.shard_files(), request_.out);
  if (can_resume()) {
    try {
      return load();  // an overwriting run was interrupted and would make the same shards again
    } catch (const CorruptData&) {
      // Start over.
    }
  }
  const std::uint64_t copies = source_.unpacked_bytes();  // exist already
  std::uint64_t needed = copies;
  for (const JobSplit& split : splits_) {
    if (!missing_.contains(split.name)) continue;
    for (std::uint64_t shard = 0; shard < split.plan.shards(); ++shard) {
      needed = checked_add(needed, shard_bytes(split, shard));
    }
  }
  std::uint64_t reusable = copies;
  for (const ReplacedFile& file : listed) {
    struct stat status {};
    if (::stat((request_.out / file.name).c_str(), &status) != 0) continue;
    reusable += static_cast<std::uint64_t>(status.st_blocks) * 512;
  }
  check_space(request_, needed, reusable);
  work_->freeze(identity().dump(), source_, request_.source, listed);
  work_->take_over_replaced();
  unpacker.keep();
}

/// Whether the frozen job is this one. Not if it was finished and OUT holds something else now, nor
/// for a stream: a plan does not know its content.
bool ShardJob::can_resume() {
  return std::ranges::none_of(missing_,
                              [&](const std::string& split) {
                                return is_finished(split) && !work_->is_replacing(split);
                              }) &&
         !source_.is_stream() && work_->frozen_plan() == plan_identity(identity().dump(), source_);
}

std::vector<ReplacedFile> ShardJob::replaceable_shards(bool overwrite) {
  std::vector<ReplacedFile> listed;
  for (const std::string& split : request_.splits) {
    if (!missing_.contains(split)) continue;
    std::ranges::move(out(split).replaceable_shards(overwrite), std::back_inserter(listed));
  }
  return listed;
}

void ShardJob::start_over() {
  work_->freeze(identity().dump(), source_, request_.source, replaceable_shards(true));
}

void ShardJob::find_pending() {
  const std::uint64_t parts = std::max<std::uint64_t>(1, request_.part_count);
  std::uint64_t needed = 0;
  std::uint64_t missing = 0;
  for (const JobSplit& split : splits_) {
    auto& pending = pending_.emplace_back();
    for (std::uint64_t shard = request_.part_index; shard < split.plan.shards(); shard += parts) {
      ++report_.shards_planned;
      const fs::path path = shard_path(split, shard);
      if (const auto result = work_->usable_result(path, request_.overwrite)) {
        ++report_.shards_resumed;
        add(*result);
        continue;
      }
      progress_.samples_planned += split.plan.shard_records(shard);
      needed = checked_add(needed, shard_bytes(split, shard));
      pending.push_back({shard, work_->temporary(path), path});
    }
    missing += pending.size();
    if (!request_.finish || pending.empty()) continue;
    throw InvalidArgument(
        fmt::format("{} of {} shards are missing in '{}'; the first is number {}", missing,
                    report_.shards_planned, request_.out.string(), pending.front().number),
        "Run the parts that make them, then set `finish` again.");
  }
  if (missing != 0) check_space(request_, needed, 0);
}

void ShardJob::write_pending() {
  try {
    for (std::size_t i = 0; i < splits_.size(); ++i) {
      if (report_.status == JobStatus::kComplete) write(splits_[i], pending_[i]);
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
  for (std::uint64_t shard = 0; shard < split.plan.shards(); ++shard) {
    ShardResult result = work_->published_result(shard_path(split, shard));
    all.samples += result.entry.samples;
    content += result.content;
    all.shards.push_back(std::move(result.entry));
    std::ranges::move(result.skipped, std::back_inserter(all.skipped));
  }
  all.content_fingerprint = content_fingerprint(content);
  if (!source_.is_stream()) remember_plan(shard_path(split, 0), work_->plan());
  return all;
}

bool ShardJob::accept(const JobSplit& split, SplitResults& made) {
  out(split.name).publish_skipped(made.skipped);
  return true;
}

bool ShardJob::publish_all() {
  std::map<std::string, SplitEntry> entries;
  for (const JobSplit& split : splits_) {
    SplitResults made = results(split);
    if (!accept(split, made)) return false;
    SplitEntry& entry = entries[split.name] = planned_entry(split);
    entry.samples = made.samples;
    entry.skipped += made.skipped.size();
    if (entry.content_fingerprint.empty()) entry.content_fingerprint = made.content_fingerprint;
    entry.shards = std::move(made.shards);
    if (!split.framing) continue;
    for (ShardEntry& shard : entry.shards) shard.columns = split.framing->columns(shard.samples);
  }
  publish(std::move(entries));
  return true;
}

void ShardJob::publish(std::map<std::string, SplitEntry> entries) {
  Manifest manifest = dataset();
  manifest.splits = std::move(entries);
  outs_.front().publish(std::move(manifest));
}

void ShardJob::note_plan() {
  for (const JobSplit& split : splits_) {
    const Plan& plan = split.plan;
    SplitEstimate made{split.name, plan.records(), plan.shards(), plan.records(), 0};
    for (std::uint64_t shard = 0; shard < plan.shards(); ++shard) {
      const std::uint64_t records = plan.shard_records(shard);
      made.smallest_shard_samples = std::min(made.smallest_shard_samples, records);
      made.largest_shard_samples = std::max(made.largest_shard_samples, records);
      preview_.bytes_needed = checked_add(preview_.bytes_needed, shard_bytes(split, shard));
    }
    preview_.samples += made.samples;
    preview_.shards += made.shards;
    preview_.splits.push_back(std::move(made));
  }
  // The copies exist by now, so their space counts as free, too.
  preview_.bytes_unpacked = source_.unpacked_bytes();
  preview_.bytes_needed = checked_add(preview_.bytes_needed, preview_.bytes_unpacked);
  preview_.bytes_free = checked_add(free_bytes(request_.out), preview_.bytes_unpacked);
  describe_plan();
}

}  // namespace precache
