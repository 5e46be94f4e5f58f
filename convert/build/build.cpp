// SPDX-License-Identifier: Apache-2.0
#include "precache/convert/build.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <nlohmann/json.hpp>

#include "convert/build/build_plan.hpp"
#include "convert/build/image_input.hpp"
#include "convert/build/labelling_identity.hpp"
#include "convert/job/content_fingerprint.hpp"
#include "convert/job/disk_space.hpp"
#include "convert/job/out_folder.hpp"
#include "convert/job/shard_run.hpp"
#include "convert/job/work_folder.hpp"
#include "convert/sidecars/unlocked_sidecars.hpp"
#include "convert/source/keys.hpp"
#include "convert/source/open_source.hpp"
#include "convert/source/source_json.hpp"
#include "convert/source/source_path.hpp"
#include "formats/bytes/checked_math.hpp"
#include "formats/shard/encoded_manifest.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

namespace fs = std::filesystem;

constexpr int kIdentityVersion = 2;  // changes when equal options give other bytes than before
constexpr const char* kSpaceHint =
    "Make room, or choose a smaller --size or --dtype uint8, or another OUT.";

Labelling labelling_of(const BuildOptions& options, const OutFolder& out) {
  Labelling labelling =
      parse_labelling(options.labels, options.classes, options.image_key, options.label_key);
  if (const Manifest* others = out.other_splits()) {
    if (!options.classes.empty() && labelling.classes != others->classes) {
      throw InvalidArgument(
          fmt::format("the splits in '{}' have other classes than '{}'", options.out.string(),
                      options.classes.string()),
          "Splits of one dataset have the same classes. Leave out --classes to take those.");
    }
    labelling.classes = others->classes;
  }
  return labelling;
}

/// The options that decide over the bytes of a dataset.
std::string identity_of(const BuildOptions& options) {
  nlohmann::ordered_json json = {
      {"version", kIdentityVersion},
      {"format", options.format},
      {"recipe", nlohmann::ordered_json::parse(options.recipe.to_json())},
      {"shards", options.shards},
      {"shard-size", options.shards == 0 ? options.shard_size_bytes : 0},
      {"seed", options.shuffle ? nlohmann::ordered_json(options.seed) : nlohmann::ordered_json()},
      {"keys", options.short_keys ? "short" : "full"},
      {"max-pixels", options.max_pixels}};
  json.update(
      labelling_identity(options.labels, options.classes, options.image_key, options.label_key));
  return json.dump();
}

void validate(const BuildOptions& options) {
  options.recipe.validate();
  check_split_name(options.split);
  if (!(options.max_bad_percent >= 0 && options.max_bad_percent <= 100)) {
    throw InvalidArgument("--max-bad is a percentage from 0 to 100");
  }
  if (options.part_count != 0 && options.part_index > options.part_count) {
    throw InvalidArgument(
        fmt::format("there is no part {} of {}", options.part_index, options.part_count));
  }
  if (options.part_count != 0 && options.overwrite) {
    throw InvalidArgument(
        "--overwrite cannot go with --part: parts would delete each other's shards",
        "Remove the old dataset first, then start the parts.");
  }
  if (options.part_count != 0 && !options.indexes.empty()) {
    throw InvalidArgument("--index cannot go with --part: it needs all shards",
                          "Give it to --finish.");
  }
  check_sidecar_kinds(options.indexes, options.format);
  if (options.source.empty() || options.out.empty()) {
    throw InvalidArgument("SOURCE and OUT may not be empty");
  }
  std::error_code error;
  if (fs::exists(options.out, error) && !fs::is_directory(options.out, error)) {
    throw IoError("cannot write to", options.out, ENOTDIR, "OUT is a folder, or will be made.");
  }
  check_apart(options.source, options.out);
  if (fs::exists(options.out / kEncodedManifestName, error)) {
    throw InvalidArgument(fmt::format("'{}' holds encoded images", options.out.string()),
                          "Choose another OUT for tensors.");
  }
  for (const fs::path& file : {options.classes, fs::path(options.labels)}) {
    if (!options.overwrite || !fs::equivalent(file, options.out / kManifestName, error)) continue;
    throw InvalidArgument(fmt::format("'{}' would be replaced while it is needed", file.string()),
                          "Copy it to another place and name the copy.");
  }
}

void check_fits(const Manifest& manifest, const BuildOptions& options) {
  const auto recipe = nlohmann::json::parse(manifest.recipe);
  if (manifest.format == options.format &&
      recipe == nlohmann::json::parse(options.recipe.to_json())) {
    return;
  }
  throw InvalidArgument(
      fmt::format("'{}' holds another dataset: format {}, recipe {}", options.out.string(),
                  manifest.format, manifest.recipe),
      "Splits of one dataset have one format and recipe. Choose another OUT; --overwrite "
      "replaces a split if it is the only one.");
}

/// A finished split may only be met by the build that made it, which then has nothing to do.
void check_same_split(const OutFolder& out, const BuildOptions& options,
                      const BuildPlan& preparation) {
  const SplitEntry& split = *out.finished_split();
  const bool same = split.source_fingerprint == preparation.source().listing.fingerprint() &&
                    out.manifest()->classes == preparation.source().classes &&
                    split.max_pixels == options.max_pixels && split.shuffled == options.shuffle &&
                    (!options.shuffle || split.seed == options.seed) &&
                    (!split.names || *split.names == preparation.keys().limits()) &&
                    split.shards.size() == preparation.plan().shards();
  if (same) return;
  throw InvalidArgument(
      fmt::format("'{}' already holds a finished split '{}'", options.out.string(), options.split),
      "Use --overwrite to replace it, --split to add another, or another OUT.");
}

/// One call of build(), from the lock to the manifest.
class Build {
 public:
  Build(const BuildOptions& options, JobProgress& progress)
      : options_(options),
        progress_(progress),
        work_(options.out, options.split, options.part_count != 0),
        out_(options.out, options.split) {
    if (const Manifest* others = out_.other_splits()) check_fits(*others, options_);
  }

  BuildReport run() {
    std::unique_ptr<BuildPlan> preparation;
    try {
      if (out_.finished_split() != nullptr && !options_.overwrite && !work_.is_replacing()) {
        report_finished();
        write_sidecars();
        return std::move(report_);
      }
      preparation = prepare();
    } catch (const UnpackingStopped&) {
      report_.status = JobStatus::kInterrupted;
      return std::move(report_);
    }
    report_.preview = preparation->preview(options_);
    const auto pending = find_pending(*preparation);
    if (options_.finish && !pending.empty()) {
      throw InvalidArgument(
          fmt::format("{} of {} shards are missing in '{}', the first is number {}", pending.size(),
                      report_.shards_planned, options_.out.string(), pending.front().number),
          "Run the parts that have them, then --finish again.");
    }
    if (!pending.empty()) convert(*preparation, pending);
    if (report_.status == JobStatus::kComplete) {
      if (options_.part_count == 0) {
        publish(*preparation);
        if (report_.status == JobStatus::kComplete) write_sidecars();
      } else {
        report_.status = JobStatus::kPartDone;
      }
    }
    return std::move(report_);
  }

 private:
  [[nodiscard]] Source list_source(Unpacker& unpacker) const {
    return open_source(options_.source, labelling_of(options_, out_), unpacker, options_.helper);
  }

  [[nodiscard]] UnpackProgress unpack_progress() {
    return {progress_.bytes_unpacked, progress_.stop};
  }

  /// Takes up an unfinished build, or begins one. What --overwrite replaces is there until all that
  /// can be checked before the first image was found to be right.
  std::unique_ptr<BuildPlan> prepare() {
    const File alone = work_.lock_preparation();
    auto preparation = work_.is_prepared() && !options_.overwrite ? load() : begin();
    if (!work_.replaced().empty()) {
      out_.discard_split(work_.replaced());
      work_.note_replaced();
    }
    return preparation;
  }

  std::unique_ptr<BuildPlan> load() {
    auto preparation =
        std::make_unique<BuildPlan>(options_, work_.load(identity_of(options_), options_.source));
    check_classes(preparation->source());
    return preparation;
  }

  std::unique_ptr<BuildPlan> begin() {
    if (options_.finish) {
      throw InvalidArgument(
          fmt::format("there is nothing to finish in '{}'", options_.out.string()),
          "Run all parts with the same options first.");
    }
    const auto listed = out_.replaceable_shards(options_.overwrite);
    Unpacker unpacker(work_.folder_for_copies(), unpack_progress());
    auto preparation = std::make_unique<BuildPlan>(options_, list_source(unpacker));
    check_classes(preparation->source());
    check_not_in_out(preparation->source().shard_files(), options_.out);
    const std::string identity = identity_of(options_);
    // Not if the job is done and something else stands there now, nor for a stream, whose content
    // no plan knows.
    const bool is_unfinished = out_.finished_split() == nullptr || work_.is_replacing();
    if (is_unfinished && !preparation->source().is_stream() &&
        work_.frozen_plan() == plan_identity(identity, preparation->source())) {
      try {
        return load();  // --overwrite was interrupted and would make the same shards once more
      } catch (const CorruptData&) {
        // Then it starts over.
      }
    }
    std::uint64_t reusable = preparation->source().unpacked_bytes();  // needs no more room
    for (const auto& shard : listed) reusable += allocated_bytes(options_.out / shard.name);
    check_space(options_.out, preparation->preview(options_).bytes_needed, reusable, kSpaceHint);
    work_.freeze(identity, preparation->source(), options_.source, listed);
    work_.take_over_replaced();
    unpacker.keep();
    return preparation;
  }

  void check_classes(const Source& source) const {
    const Manifest* others = out_.other_splits();
    if (others == nullptr || others->classes == source.classes) return;
    throw InvalidArgument(
        fmt::format("'{}' has splits with other classes ({}) than this one ({})",
                    options_.out.string(), others->classes.size(), source.classes.size()),
        "Splits of one dataset have the same classes. Choose another OUT.");
  }

  /// The same build once more changes nothing; another one is refused.
  void report_finished() {
    check_fits(*out_.manifest(), options_);
    const SplitEntry& split = *out_.finished_split();
    Unpacker unpacker(work_.folder_for_copies(), unpack_progress());
    const BuildPlan preparation(options_, list_source(unpacker));
    check_same_split(out_, options_, preparation);
    const InputFiles samples(options_.source, preparation.source());
    report_.compared =
        compare_content({.first_shard = options_.out / split.shards.front().file,
                         .fingerprint = split.content_fingerprint,
                         .plan = plan_identity(identity_of(options_), preparation.source()),
                         .samples = preparation.plan().records(),
                         .has_times = !preparation.source().is_stream(),
                         .reader = [&] { return samples.crc_reader(); }},
                        progress_);
    report_.preview = preparation.preview(options_);
    report_.status = JobStatus::kAlreadyComplete;
    report_.samples = split.samples;
    report_.skipped_count = split.skipped;
    report_.shards_planned = report_.shards_done = report_.shards_resumed = split.shards.size();
    for (const ShardEntry& shard : split.shards) report_.bytes += shard.bytes;
    work_.remove();
  }

  /// The dataset is whole by now, whatever comes of this.
  void write_sidecars() {
    if (options_.indexes.empty()) return;
    try {
      report_.indexes = write_sidecars_unlocked(options_.out, {options_.indexes, options_.split});
    } catch (Error& error) {
      error.add_hint("The shards are complete; only an index is missing.");
      throw;
    }
  }

  [[nodiscard]] fs::path shard_path(std::uint64_t shard) const {
    return out_.shard_path(shard, extension(parse_format(options_.format)));
  }

  /// Fills report_ with what is there already.
  std::vector<PendingShard> find_pending(const BuildPlan& preparation) {
    std::vector<PendingShard> pending;
    const std::uint64_t parts = std::max<std::uint64_t>(1, options_.part_count);
    for (std::uint64_t shard = options_.part_index % parts; shard < preparation.plan().shards();
         shard += parts) {
      ++report_.shards_planned;
      const fs::path path = shard_path(shard);
      if (auto result = work_.usable_result(path, options_.overwrite)) {
        ++report_.shards_resumed;
        add(*result);
      } else {
        pending.push_back({shard, work_.temporary(path), path});
      }
    }
    return pending;
  }

  void add(const ShardResult& result) {
    ++report_.shards_done;
    report_.samples += result.entry.samples;
    report_.bytes += result.entry.bytes;
    report_.damaged += result.damaged;
    report_.skipped.insert(report_.skipped.end(), result.skipped.begin(), result.skipped.end());
    report_.skipped_count = report_.skipped.size();
  }

  void convert(const BuildPlan& preparation, const std::vector<PendingShard>& pending) {
    std::uint64_t needed = 0;
    for (const auto& shard : pending) {
      const std::uint64_t records = preparation.plan().shard_records(shard.number);
      progress_.samples_planned += records;
      needed = checked_add(needed, preparation.framing().shard_bytes(records));
    }
    check_space(options_.out, needed, 0, kSpaceHint);
    const auto skipped_before = report_.skipped;
    // Of all samples, for a part too: --finish sees to the sum.
    const double allowed =
        std::floor(static_cast<double>(report_.preview.samples) * options_.max_bad_percent / 100);
    const ImageInput samples(options_.source, preparation.source(), preparation.keys(),
                             options_.recipe, options_.max_pixels);
    const ShardRunInput input{
        .samples = samples,
        .plan = preparation.plan(),
        .framing = preparation.framing(),
        .tensor_bytes = options_.recipe.spec().size_bytes(),
        .allowed_rejections = options_.fail_on_bad ? 0 : static_cast<std::uint64_t>(allowed),
        .rejected_before = skipped_before.size()};
    ShardRunOutcome outcome;
    try {
      outcome = run_shards(
          input, pending, progress_,
          {.save = [&](const PendingShard& shard,
                       const ShardResult& result) { work_.save_result(shard.final_path, result); },
           .done = [&](const PendingShard&, const ShardResult& result) { add(result); }});
    } catch (IoError& error) {
      error.add_hint(
          fmt::format("{} of {} shards are complete; run the same command again to continue.",
                      report_.shards_done, report_.shards_planned));
      throw;
    }
    report_.converted = outcome.converted;
    if (outcome.too_many_rejections) {
      report_.status = JobStatus::kTooManyBad;
    } else if (outcome.stopped && report_.shards_done < report_.shards_planned) {
      report_.status = JobStatus::kInterrupted;
    }
    // Also those of shards that are not whole: a user who is told of bad files wants to see them
    // all.
    report_.skipped = skipped_before;
    report_.skipped.insert(report_.skipped.end(), outcome.skipped.begin(), outcome.skipped.end());
    report_.skipped_count = report_.skipped.size();
    if (outcome.too_many_rejections && options_.part_count == 0) {
      out_.publish_skipped(report_.skipped);
    }
  }

  void publish(const BuildPlan& preparation) {
    SplitEntry split;
    split.seed = options_.shuffle ? options_.seed : 0;
    split.shuffled = options_.shuffle;
    split.max_pixels = options_.max_pixels;
    split.source_fingerprint = preparation.source().listing.fingerprint();
    split.names = preparation.keys().limits();
    std::vector<SkippedSample> skipped;
    std::uint64_t content = 0;
    for (std::uint64_t shard = 0; shard < preparation.plan().shards(); ++shard) {
      ShardResult result = work_.published_result(shard_path(shard));
      result.entry.columns = preparation.framing().columns(result.entry.samples);
      split.samples += result.entry.samples;
      content += result.content;
      split.shards.push_back(std::move(result.entry));
      skipped.insert(skipped.end(), result.skipped.begin(), result.skipped.end());
    }
    split.skipped = skipped.size();
    split.content_fingerprint = content_fingerprint(content);
    if (static_cast<double>(skipped.size()) >
            static_cast<double>(report_.preview.samples) * options_.max_bad_percent / 100 ||
        (options_.fail_on_bad &&
         !skipped.empty())) {  // parts may each have been within it, or an earlier run allowed more
      report_.status = JobStatus::kTooManyBad;
      report_.skipped = std::move(skipped);
      report_.skipped_count = report_.skipped.size();
      out_.publish_skipped(report_.skipped);
      return;
    }
    out_.publish_skipped(skipped);
    Manifest dataset;
    dataset.classes = preparation.source().classes;
    dataset.spec = options_.recipe.spec();
    dataset.recipe = options_.recipe.to_json();
    dataset.format = options_.format;
    if (!preparation.source().is_stream()) remember_plan(shard_path(0), work_.plan());
    out_.publish(dataset, std::move(split));
    work_.remove();
  }

  const BuildOptions& options_;
  JobProgress& progress_;
  WorkFolder work_;
  OutFolder out_;
  BuildReport report_;
};

}  // namespace

BuildEstimate estimate_build(const BuildOptions& options) {
  validate(options);
  const OutFolder out(options.out, options.split);
  const bool finished = out.finished_split() != nullptr && !options.overwrite;
  if (const Manifest* others = out.other_splits()) check_fits(*others, options);
  if (finished) check_fits(*out.manifest(), options);
  std::atomic<std::uint64_t> unpacked = 0;
  const std::atomic<bool> stop = false;
  Unpacker unpacker(fs::temp_directory_path(), {unpacked, stop});
  const BuildPlan preparation(
      options, open_source(options.source, labelling_of(options, out), unpacker, options.helper));
  if (finished) check_same_split(out, options, preparation);
  return preparation.preview(options);
}

BuildReport build(const BuildOptions& options, JobProgress& progress) {
  validate(options);
  return Build(options, progress).run();
}

}  // namespace precache
