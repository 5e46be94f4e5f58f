// SPDX-License-Identifier: Apache-2.0
#include "convert/job/shard_job.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "convert/job/differences.hpp"
#include "convert/job/work_names.hpp"
#include "convert/source/source_json.hpp"
#include "convert/source/source_path.hpp"
#include "formats/bytes/checked_math.hpp"
#include "formats/bytes/number_text.hpp"
#include "precache/convert/job_state.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

namespace fs = std::filesystem;

}  // namespace

ShardJob::ShardJob(JobRequest request, JobProgress& progress, JobReport& report,
                   JobEstimate& estimate)
    : request_(std::move(request)), progress_(progress), report_(report), estimate_(estimate) {
  for (const std::string& split : request_.splits) check_split_name(split);
}

void ShardJob::run() {
  for (const std::string& split : request_.splits) report_.splits.push_back({.name = split});
  // Steps on several machines share OUT; a preparation that replaces a dataset does not.
  const bool alone = request_.step == JobStep::kWhole || request_.overwrite;
  work_.emplace(request_.out, request_.work_name, !alone);
  open_out();
  try {
    find_missing();
    if (!missing_.empty()) prepare();
    if (missing_.empty()) {
      return request_.step == JobStep::kWhole ? report_finished() : report_late();
    }
  } catch (const UnpackingStopped&) {
    report_.status = JobStatus::kInterrupted;
    return;
  }
  if (request_.step == JobStep::kPrepare) {
    report_.status = JobStatus::kPrepared;
    return request_.share.count == 0 ? note_plan() : void();
  }
  note_plan();
  std::erase_if(splits_, [&](const JobSplit& split) { return !missing_.contains(split.name); });
  if (request_.step != JobStep::kFinish) {
    find_pending();
    write_pending();
    if (report_.status != JobStatus::kComplete) return;
  }
  if (request_.step == JobStep::kPart) {
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

void ShardJob::find_missing() {
  missing_.clear();
  for (const std::string& split : request_.splits) {
    if (!is_finished(split) || is_replaced(split)) missing_.insert(split);
  }
}

void ShardJob::open_out() {
  outs_.clear();
  for (const std::string& split : request_.splits) outs_.emplace_back(request_.out, split);
  check_dataset(false);
}

OutFolder& ShardJob::out(const std::string& split) {
  return outs_[static_cast<std::size_t>(std::ranges::find(request_.splits, split) -
                                        request_.splits.begin())];
}

const Manifest* ShardJob::other_splits() const {
  const auto& found = outs_.front().manifest();
  const auto is_own = [&](const auto& split) {
    return std::ranges::find(request_.splits, split.first) != request_.splits.end();
  };
  return !found || std::ranges::all_of(found->splits, is_own) ? nullptr : &*found;
}

SplitReport& ShardJob::report_of(const std::string& split) {
  return *std::ranges::find(report_.splits, split, &SplitReport::name);
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
  plan_splits();
}

void ShardJob::plan_splits() {
  splits_ = make_plan();
  check_dataset(true);
  for (const JobSplit& split : splits_) {
    if (is_finished(split.name) && !is_replaced(split.name)) check_finished(split);
  }
}

/// Refuses to add splits to a dataset that does not fit.
void ShardJob::check_dataset(bool with_classes) {
  const Manifest* found = other_splits();
  if (found == nullptr || request_.is_encoded) return;
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
  if (split.framing) planned.columns = split.framing->named();
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
                  request_.out.string(), split.name, compare(source_difference(split))),
      request_.finished_hint);
}

void ShardJob::add_finished(const std::string& split, const SplitEntry& finished) {
  SplitReport& made = report_of(split);
  const bool is_part = request_.step == JobStep::kPart;
  const std::uint64_t shards = finished.shards.size();
  const Plan plan(finished.samples + finished.skipped, shards, std::nullopt);
  std::uint64_t listed = 0;
  for (std::uint64_t i = is_part ? request_.share.index : 0; i < shards;
       i += is_part ? request_.share.count : 1) {
    const ShardEntry& shard = finished.shards[i];
    made.samples += shard.samples;
    made.bytes += shard.bytes;
    listed += plan.shard_records(i);
    ++made.shards_done;
  }
  made.skipped_count = is_part ? listed - made.samples : finished.skipped;
  report_.samples += made.samples;
  report_.skipped_count += made.skipped_count;
  report_.bytes += made.bytes;
  report_.shards_done += made.shards_done;
}

/// Reports that the same request was fulfilled before; plan() refuses any other.
void ShardJob::report_finished() {
  Unpacker unpacker(work_->make_folder(), {progress_.bytes_unpacked, progress_.stop});
  plan(list(unpacker));
  for (const JobSplit& split : splits_) {
    const SplitEntry finished = *out(split.name).finished();
    const auto reader = crc_reader(split);
    report_.compared =
        !reader
            ? SourceComparison::kManifest
            : compare_content({.first_shard = request_.out / finished.shards.at(0).file,
                               .fingerprint = finished.content_fingerprint,
                               .plan = plan_identity(identity().dump(), source_, source_stamp()),
                               .samples = split.plan.records(),
                               .has_times = !source_.is_stream(),
                               .reader = reader},
                              progress_);
    add_finished(split.name, finished);
  }
  report_.shards_planned = report_.shards_resumed = report_.shards_done;
  report_.status = JobStatus::kAlreadyComplete;
  note_plan();
  work_->remove();  // left by a run that was killed after it wrote the manifest
}

/// Reports that the split was finished before this step came to it. The source was not listed, so
/// only options are compared.
void ShardJob::report_late() {
  for (const std::string& split : request_.splits) {
    const SplitEntry finished = *out(split).finished();
    source_.classes = out(split).manifest() ? out(split).manifest()->classes : source_.classes;
    SplitEntry asked = planned_entry({split, {1, 1, std::nullopt}});
    asked.samples = finished.samples;
    asked.skipped = finished.skipped;
    asked.source_fingerprint = finished.source_fingerprint;
    asked.content_fingerprint = finished.content_fingerprint;
    asked.names = finished.names;
    asked.columns = finished.columns;
    asked.shards = finished.shards;
    const std::string text = split_differences(out(split).manifest_json(),
                                               manifest_json(split, asked), split, false, "");
    if (!text.empty()) {
      throw InvalidArgument(fmt::format("'{}' already holds a finished split '{}' that differs: {}",
                                        request_.out.string(), split, text),
                            request_.finished_hint);
    }
    add_finished(split, finished);
  }
  report_.shards_planned = report_.shards_resumed = report_.shards_done;
  report_.status = JobStatus::kAlreadyComplete;
  report_.compared = SourceComparison::kNothing;
  if (request_.step == JobStep::kFinish) work_->remove();  // left by a run that was killed
}

/// Continues an unfinished job, or begins one. Files that are replaced stay until everything was
/// checked that can be checked before the first sample.
void ShardJob::prepare() {
  if (request_.step == JobStep::kPrepare && request_.share.count != 0) return prepare_share();
  const auto load_without_lock = [&] {
    if (!work_->is_prepared() || request_.overwrite) return false;
    load();
    return work_->replaced().empty();
  };
  if (request_.step != JobStep::kWhole && load_without_lock()) return;
  open_out();  // another process may have finished just now
  find_missing();
  if (missing_.empty()) return;
  const File alone = work_->lock_preparation();
  work_->is_prepared() && !request_.overwrite ? load() : begin();
  if (work_->replaced().empty()) return;
  for (const std::string& split : missing_) out(split).discard_split(work_->replaced());
  work_->note_replaced();
}

void ShardJob::prepare_share() {
  if (work_->is_prepared() && !request_.overwrite) return;  // all shares were put together
  const auto [index, count] = request_.share;
  list_share(work_->make_folder() / work_names::found(index, count));
  report_.listed = true;
}

std::vector<fs::path> ShardJob::found_shares() const {
  return work_ ? work_->found_shares() : std::vector<fs::path>();
}

void ShardJob::load() {
  auto [source, listed_root] = work_->load(identity().dump());
  const fs::path path = work_->plan_path(work_->plan());
  open_plan(path, work_->plan());
  if (plan_identity(identity().dump(), source, source_stamp()) != work_->plan()) {
    throw CorruptData(path, 0, "it does not match the plan in job.json");
  }
  find_source(source, listed_root);
  source_ = std::move(source);
  plan_splits();
  check_plan(false);
}

void ShardJob::begin() {
  if (request_.step == JobStep::kFinish) {
    throw InvalidArgument(fmt::format("there is nothing to finish in '{}'", request_.out.string()),
                          "Run all parts with the same options first.");
  }
  const auto listed = replaceable_shards(request_.overwrite);
  Unpacker unpacker(work_->make_folder(), {progress_.bytes_unpacked, progress_.stop});
  plan(list(unpacker));
  check_plan(true);
  check_not_in_out(source_.shard_files(), request_.out);
  // An overwriting run was interrupted and would make the same shards again.
  if (can_resume()) return load();
  check_whole_space(listed);
  freeze(listed);
  work_->take_over_replaced();
  unpacker.keep();
}

void ShardJob::check_whole_space(const std::vector<ReplacedFile>& replaced) {
  const std::uint64_t copies = source_.unpacked_bytes();  // exist already
  std::uint64_t needed = copies;
  for (const JobSplit& split : splits_) {
    if (!missing_.contains(split.name)) continue;
    for (std::uint64_t shard = 0; shard < split.plan.shards(); ++shard) {
      needed = checked_add(needed, shard_bytes(split, shard));
    }
  }
  std::uint64_t reusable = copies;
  for (const ReplacedFile& file : replaced) {
    struct stat status {};
    if (::stat((request_.out / file.name).c_str(), &status) != 0) continue;
    reusable += static_cast<std::uint64_t>(status.st_blocks) * 512;
  }
  check_space(needed, reusable);
}

void ShardJob::freeze(const std::vector<ReplacedFile>& replaced) {
  const std::string plan = plan_identity(identity().dump(), source_, source_stamp());
  save_plan(work_->plan_path(plan), plan);
  JobFacts facts{plan, identity().dump(), request_.source, request_.format};
  for (const JobSplit& split : splits_) {
    facts.splits.push_back({split.name, split.plan.records(), split.plan.shards()});
  }
  work_->freeze(facts, source_, replaced);
  open_plan(work_->plan_path(plan), plan);
  source_.listing = {};
  report_.listed = true;
}

/// Whether the frozen job is this one. Not if it was finished and OUT holds something else now, nor
/// for a stream: a plan does not know its content.
bool ShardJob::can_resume() {
  const std::string plan = plan_identity(identity().dump(), source_, source_stamp());
  const bool is_other = std::ranges::any_of(missing_, [&](const std::string& split) {
    return is_finished(split) && !work_->is_replacing(split);
  });
  if (is_other || source_.is_stream() || work_->frozen_plan() != plan) return false;
  try {
    verify_plan(work_->plan_path(plan));
    return true;
  } catch (const CorruptData&) {
    return false;
  }
}

std::vector<ReplacedFile> ShardJob::replaceable_shards(bool overwrite) {
  std::vector<ReplacedFile> listed;
  for (const std::string& split : request_.splits) {
    if (!missing_.contains(split)) continue;
    std::ranges::move(out(split).replaceable_shards(overwrite), std::back_inserter(listed));
  }
  return listed;
}

void ShardJob::start_over() { freeze(replaceable_shards(true)); }

void ShardJob::note_plan() {
  for (const JobSplit& split : splits_) {
    const Plan& plan = split.plan;
    SplitEstimate made{split.name, plan.records(), plan.shards(), plan.records(), 0};
    for (std::uint64_t shard = 0; shard < plan.shards(); ++shard) {
      const std::uint64_t records = plan.shard_records(shard);
      made.smallest_shard_samples = std::min(made.smallest_shard_samples, records);
      made.largest_shard_samples = std::max(made.largest_shard_samples, records);
      estimate_.bytes_needed = checked_add(estimate_.bytes_needed, shard_bytes(split, shard));
    }
    estimate_.samples += made.samples;
    estimate_.shards += made.shards;
    estimate_.splits.push_back(std::move(made));
  }
  // The copies exist by now, so their space counts as free, too.
  estimate_.bytes_unpacked = source_.unpacked_bytes();
  estimate_.bytes_needed = checked_add(estimate_.bytes_needed, estimate_.bytes_unpacked);
  estimate_.bytes_free = checked_add(free_bytes_at(request_.out), estimate_.bytes_unpacked);
  describe_plan();
}

}  // namespace precache
