// SPDX-License-Identifier: Apache-2.0
#include "precache/convert/reformat.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "convert/job/content_fingerprint.hpp"
#include "convert/job/disk_space.hpp"
#include "convert/job/out_folder.hpp"
#include "convert/job/shard_run.hpp"
#include "convert/job/work_folder.hpp"
#include "convert/reformat/reformat_plan.hpp"
#include "convert/reformat/source_crcs.hpp"
#include "convert/reformat/tensor_input.hpp"
#include "convert/source/source_json.hpp"
#include "convert/source/source_path.hpp"
#include "convert/source/unpacker.hpp"
#include "formats/bytes/checked_math.hpp"
#include "formats/os/file.hpp"
#include "formats/os/temporary_file.hpp"
#include "formats/shard/encoded_manifest.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

namespace fs = std::filesystem;

// All splits are one piece of work; no split can be called so.
constexpr const char* kWorkName = ".convert";
// One file takes what one core can copy to it; so many take what a fast array of disks does.
constexpr std::size_t kShardsAtOnce = 8;
constexpr const char* kSpaceHint = "Make room, or choose a smaller --dtype, or another OUT.";

void validate(const ReformatOptions& options) {
  if (options.shards.empty() || options.out.empty()) {
    throw InvalidArgument("SHARDS and OUT may not be empty");
  }
  if (options.split) check_split_name(*options.split);
  std::error_code error;
  if (fs::exists(options.out, error) && !fs::is_directory(options.out, error)) {
    throw IoError("cannot write to", options.out, ENOTDIR, "OUT is a folder, or will be made.");
  }
  if (fs::exists(options.out / kEncodedManifestName, error)) {
    throw InvalidArgument(fmt::format("'{}' holds encoded images", options.out.string()),
                          "Choose another OUT for tensors.");
  }
}

void check_fits(const Manifest& found, const Manifest& planned, const fs::path& out) {
  if (found.format == planned.format && found.spec == planned.spec &&
      found.classes == planned.classes && found.recipe == planned.recipe) {
    return;
  }
  throw InvalidArgument(
      fmt::format("'{}' holds another dataset: {} of {}, recipe {}", out.string(),
                  name(found.format), found.spec.text(), found.recipe.to_json()),
      "Splits of one dataset have one format, recipe and list of classes. Choose another OUT; "
      "--overwrite replaces splits if no other ones are there.");
}

/// Whether the frozen conversion, if there is one, has begun to replace a split and not ended.
bool is_replacing(const WorkFolder* work, const OutFolder& out) {
  return work != nullptr &&
         work->is_replacing([&](const std::string& file) { return out.is_shard_name(file); });
}

/// The splits that are still to be made. Those that are there are replaced if --overwrite asks for
/// it, or did so in a run that was interrupted, which `work` knows. Throws InvalidArgument if OUT
/// has others by their names.
std::vector<const ReformatPlan::Split*> missing_splits(const ReformatPlan& preparation,
                                                       const ReformatOptions& options,
                                                       const WorkFolder* work) {
  std::vector<const ReformatPlan::Split*> missing;
  const auto is_replaced = [&](const std::string& split) {
    const bool is_made = std::ranges::any_of(
        preparation.splits, [&](const auto& made) { return made.source.name() == split; });
    return is_made && (options.overwrite || is_replacing(work, OutFolder(options.out, split)));
  };
  for (const auto& split : preparation.splits) {
    const OutFolder out(options.out, split.source.name());
    // What is replaced need not fit.
    if (out.manifest() && std::ranges::any_of(out.manifest()->splits, [&](const auto& found) {
          return !is_replaced(found.first);
        })) {
      check_fits(*out.manifest(), preparation.dataset(), options.out);
    }
    if (out.finished_split() == nullptr || is_replaced(split.source.name())) {
      missing.push_back(&split);
    } else if (!is_planned(*out.finished_split(), split.planned_entry(options))) {
      throw InvalidArgument(fmt::format("'{}' already holds a finished split '{}'",
                                        options.out.string(), split.source.name()),
                            "Use --overwrite to replace it, or another OUT.");
    }
  }
  return missing;
}

/// One call of convert(), from the lock to the manifest.
class Conversion {
 public:
  Conversion(const ReformatOptions& options, JobProgress& progress)
      : options_(options), progress_(progress), preparation_(options) {
    check_not_in_out(preparation_.source.files, options.out);
    work_.emplace(options.out, kWorkName, false);
    splits_ = missing_splits(preparation_, options, &*work_);
  }

  ReformatReport run() {
    report_.preview = preparation_.preview(options_.out);
    try {
      if (splits_.empty()) return report_finished();
    } catch (const UnpackingStopped&) {
      report_.status = JobStatus::kInterrupted;
      return std::move(report_);
    }
    prepare();
    find_pending();
    run_splits();
    if (report_.shards_done == shards_planned_ && all_checked_) {
      publish();
    } else {
      report_.status = JobStatus::kInterrupted;
    }
    return std::move(report_);
  }

 private:
  using Split = ReformatPlan::Split;

  [[nodiscard]] fs::path shard_path(const Split& split, std::uint64_t shard) const {
    return OutFolder(options_.out, split.source.name())
        .shard_path(shard, extension(preparation_.format));
  }

  ReformatReport report_finished() {
    report_.status = JobStatus::kAlreadyComplete;
    const Manifest manifest = Manifest::read(options_.out / kManifestName);
    for (const Split& split : preparation_.splits) {
      report_.compared = compare(split, manifest.splits.at(split.source.name()));
      for (const ShardEntry& shard : manifest.splits.at(split.source.name()).shards) {
        report_.bytes += shard.bytes;
        ++report_.shards_done;
      }
    }
    report_.shards_resumed = report_.shards_done;
    work_->remove();  // a run killed after it wrote the manifest has left it
    return std::move(report_);
  }

  /// Of shards without a manifest nothing but their content tells that they are the same.
  SourceComparison compare(const Split& split, const SplitEntry& finished) {
    if (preparation_.source.has_manifest) return SourceComparison::kManifest;
    SourceCrcs check(split.source);
    const TensorInput samples(split.source, preparation_.conversion, check);
    const std::size_t tensor_bytes = preparation_.conversion.result().spec.size_bytes();
    const auto reader = [&]() -> SampleCrc {
      return [maker = std::shared_ptr<TensorMaker>(samples.tensor_maker()),
              tensor = std::vector<std::byte>(tensor_bytes)](std::uint64_t sample) mutable {
        (void)maker->make(sample, tensor);
        return maker->source_crc();
      };
    };
    return compare_content({.first_shard = options_.out / finished.shards.front().file,
                            .fingerprint = finished.content_fingerprint,
                            .plan = plan_identity(preparation_.identity(options_), {}),
                            .samples = split.plan.records(),
                            .reader = reader},
                           progress_);
  }

  /// Takes up an unfinished conversion, or begins one.
  void prepare() {
    const File alone = work_->lock_preparation();
    if (!load()) {
      const auto listed = replaceable_shards(options_.overwrite);
      std::uint64_t reusable = 0;
      for (const auto& shard : listed) reusable += allocated_bytes(options_.out / shard.name);
      check_space(options_.out, report_.preview.bytes_needed, reusable, kSpaceHint);
      work_->freeze(preparation_.identity(options_), {}, preparation_.source.folder, listed);
      work_->take_over_replaced();
    }
    if (work_->replaced().empty()) return;
    for (const Split* split : splits_) {
      OutFolder(options_.out, split->source.name()).discard_split(work_->replaced());
    }
    work_->note_replaced();
  }

  /// False if there is nothing to take up.
  bool load() {
    const std::string identity = preparation_.identity(options_);
    if (!work_->is_prepared()) return false;
    // Where --overwrite was interrupted, it would make the same shards once more: not if the job is
    // done and something else stands there now.
    const bool is_done = std::ranges::any_of(splits_, [&](const Split* split) {
      const OutFolder out(options_.out, split->source.name());
      return out.finished_split() != nullptr && !is_replacing(&*work_, out);
    });
    if (options_.overwrite && (is_done || work_->frozen_plan() != plan_identity(identity, {}))) {
      return false;
    }
    try {
      (void)work_->load(identity, preparation_.source.folder);
      return true;
    } catch (const CorruptData&) {
      if (!options_.overwrite) throw;
      return false;
    }
  }

  [[nodiscard]] std::vector<ReplacedFile> replaceable_shards(bool overwrite) const {
    std::vector<ReplacedFile> listed;
    for (const Split* split : splits_) {
      const OutFolder out(options_.out, split->source.name());
      std::ranges::move(out.replaceable_shards(overwrite), std::back_inserter(listed));
    }
    return listed;
  }

  void find_pending() {
    std::uint64_t needed = 0;
    for (const Split* split : splits_) {
      auto& pending = pending_.emplace_back();
      for (std::uint64_t shard = 0; shard < split->plan.shards(); ++shard) {
        ++shards_planned_;
        const fs::path path = shard_path(*split, shard);
        if (const auto result = work_->usable_result(path, options_.overwrite)) {
          ++report_.shards_resumed;
          add(*result);
          continue;
        }
        const std::uint64_t records = split->plan.shard_records(shard);
        progress_.samples_planned += records;
        needed = checked_add(needed, split->framing->shard_bytes(records));
        pending.push_back({shard, work_->temporary(path), path});
      }
    }
    check_space(options_.out, needed, 0, kSpaceHint);
  }

  void add(const ShardResult& result) {
    ++report_.shards_done;
    report_.bytes += result.entry.bytes;
  }

  void run_splits() {
    try {
      for (std::size_t i = 0; i < splits_.size() && !progress_.stop; ++i) {
        run_split(*splits_[i], pending_[i]);
      }
    } catch (IoError& error) {
      error.add_hint(
          fmt::format("{} of {} shards are complete; run the same command again to continue.",
                      report_.shards_done, shards_planned_));
      throw;
    } catch (const CorruptData&) {
      // Shards that are complete may hold what was found to be damaged only later: the next run
      // makes them again.
      if (!keeps_shards()) {
        work_->freeze(preparation_.identity(options_), {}, preparation_.source.folder,
                      replaceable_shards(true));
      }
      throw;
    }
  }

  /// Whether each shard is made of one shard, which is found to be whole before it is committed.
  [[nodiscard]] bool keeps_shards() const {
    return !options_.seed && !options_.shards_per_split && !options_.shard_size_bytes;
  }

  void run_split(const Split& split, const std::vector<PendingShard>& pending) {
    SourceCrcs check(split.source);
    check.check_empty();
    const TensorInput samples(split.source, preparation_.conversion, check);
    const ShardRunInput input{.samples = samples,
                              .plan = split.plan,
                              .framing = *split.framing,
                              .tensor_bytes = preparation_.conversion.result().spec.size_bytes(),
                              .allowed_rejections = 0,
                              .rejected_before = 0,
                              .shards_at_once = kShardsAtOnce};
    const ShardRunOutcome outcome = run_shards(
        input, pending, progress_,
        {.save = [&](const PendingShard& shard,
                     const ShardResult& result) { work_->save_result(shard.final_path, result); },
         .done = [&](const PendingShard&, const ShardResult& result) { add(result); }});
    report_.converted += outcome.converted;
    if (keeps_shards()) return;
    check.check_rest(progress_.stop);
    if (progress_.stop) all_checked_ = false;
  }

  void publish() {
    Manifest manifest = preparation_.dataset();
    if (fs::exists(options_.out / kManifestName)) {
      manifest = Manifest::read(options_.out / kManifestName);
    }
    for (const Split* split : splits_) {
      SplitEntry entry = split->planned_entry(options_);
      std::uint64_t content = 0;
      for (std::uint64_t shard = 0; shard < split->plan.shards(); ++shard) {
        ShardResult result = work_->published_result(shard_path(*split, shard));
        content += result.content;
        result.entry.columns = entry.shards[shard].columns;
        entry.shards[shard] = std::move(result.entry);
      }
      const std::string& split_name = split->source.name();
      remember_plan(shard_path(*split, 0), work_->plan());
      if (!preparation_.source.has_manifest) {
        entry.content_fingerprint = content_fingerprint(content);
      } else {
        OutFolder(options_.out, split_name)
            .publish_skipped_lines(
                OutFolder(preparation_.source.folder, split_name).skipped_lines());
      }
      manifest.splits[split_name] = std::move(entry);
    }
    write_file_atomically(options_.out / kManifestName, manifest.to_json());
    work_->remove();
  }

  const ReformatOptions& options_;
  JobProgress& progress_;
  ReformatPlan preparation_;
  std::optional<WorkFolder> work_;
  std::vector<const Split*> splits_;                // that are to be made
  std::vector<std::vector<PendingShard>> pending_;  // of each
  std::uint64_t shards_planned_ = 0;
  bool all_checked_ = true;  // what was read
  ReformatReport report_;
};

}  // namespace

ReformatEstimate estimate_reformat(const ReformatOptions& options) {
  validate(options);
  const ReformatPlan preparation(options);
  check_not_in_out(preparation.source.files, options.out);
  (void)missing_splits(preparation, options, nullptr);
  return preparation.preview(options.out);
}

ReformatReport reformat(const ReformatOptions& options, JobProgress& progress) {
  validate(options);
  return Conversion(options, progress).run();
}

}  // namespace precache
