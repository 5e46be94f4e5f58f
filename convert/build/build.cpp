// SPDX-License-Identifier: Apache-2.0
#include "precache/convert/build.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "convert/build/image_input.hpp"
#include "convert/job/image_job.hpp"
#include "convert/job/shard_formats.hpp"
#include "convert/sidecars/job_sidecars.hpp"
#include "formats/shard/encoded_manifest.hpp"
#include "formats/shard/framing.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

namespace fs = std::filesystem;

constexpr int kIdentityVersion = 3;  // changes when equal options give other bytes than before

void validate(const BuildOptions& options) {
  options.recipe.validate();
  if (!(options.max_bad_percent >= 0 && options.max_bad_percent <= 100)) {
    throw InvalidArgument("`max_bad_percent` must be from 0 to 100");
  }
  if (options.part_count != 0 && options.part_index >= options.part_count) {
    throw InvalidArgument(
        fmt::format("`part` {}/{} does not exist: parts count from 0", options.part_index,
                    options.part_count),
        fmt::format("The parts are 0/{0} to {1}/{0}.", options.part_count, options.part_count - 1));
  }
  if (options.part_count != 0 && options.overwrite) {
    throw InvalidArgument(
        "`overwrite` cannot be combined with `part`: parts would delete each other's shards",
        "Remove the old dataset first, then start the parts.");
  }
  if (options.part_count != 0 && !options.indexes.empty()) {
    throw InvalidArgument("`index` cannot be combined with `part`: it needs all shards",
                          "Give it together with `finish`.");
  }
  check_sidecar_kinds(options.indexes, options.format);
  std::error_code error;
  if (fs::exists(options.out / kEncodedManifestName, error)) {
    throw InvalidArgument(fmt::format("'{}' holds encoded images", options.out.string()),
                          "Choose another `out` for tensors.");
  }
  for (const fs::path& file : {options.classes, fs::path(options.labels)}) {
    if (!options.overwrite || !fs::equivalent(file, options.out / kManifestName, error)) continue;
    throw InvalidArgument(fmt::format("'{}' would be replaced while it is needed", file.string()),
                          "Copy it to another place and name the copy.");
  }
}

class BuildJob : public ImageJob {
 public:
  BuildJob(const BuildOptions& options, JobProgress& progress, BuildReport& report)
      : ImageJob(options,
                 {.part_index = options.part_index,
                  .part_count = options.part_count,
                  .finish = options.finish,
                  .space_hint = "Make room, choose a smaller `size` or the `dtype` uint8, or "
                                "another `out`."},
                 progress, report),
        options_(options),
        report_(report) {
    short_keys_ = options.short_keys;
    validate(options);
  }

  /// The dataset is whole by now, whatever comes of this.
  void write_indexes() {
    const bool is_complete =
        report_.status == JobStatus::kComplete || report_.status == JobStatus::kAlreadyComplete;
    if (!is_complete || options_.indexes.empty()) return;
    try {
      report_.indexes = write_sidecars_unlocked(options_.out, {options_.indexes, options_.split});
    } catch (Error& error) {
      error.add_hint("The shards are complete; only an index is missing.");
      throw;
    }
  }

 private:
  [[nodiscard]] std::string identity() const override {
    using Json = nlohmann::ordered_json;
    Json json = {{"version", kIdentityVersion},
                 {"recipe", Json::parse(options_.recipe.to_json())},
                 {"seed", options_.shuffle ? Json(options_.seed) : Json()},
                 {"keys", options_.short_keys ? "short" : "full"},
                 {"max_pixels", options_.max_pixels}};
    json.update(image_identity());
    return json.dump();
  }

  void check_fits(const Manifest& manifest) const {
    if (manifest.format == options_.format && manifest.recipe == options_.recipe) return;
    throw InvalidArgument(
        fmt::format("'{}' holds another dataset: format {}, recipe {}", options_.out.string(),
                    name(manifest.format), manifest.recipe.to_json()),
        "All splits of a dataset have one format and recipe. Choose another `out`; `overwrite` "
        "replaces a split if it is the only one.");
  }

  void check_out() override {
    if (const Manifest* others = out().other_splits()) check_fits(*others);
  }

  [[nodiscard]] Labelling labelling() override {
    Labelling labelling = ImageJob::labelling();
    if (const Manifest* others = out().other_splits()) {
      if (!options_.classes.empty() && labelling.classes != others->classes) {
        throw InvalidArgument(
            fmt::format("the splits in '{}' have other classes than '{}'", options_.out.string(),
                        options_.classes.string()),
            "All splits of a dataset have the same classes. Leave out `classes` to take those.");
      }
      labelling.classes = others->classes;
    }
    return labelling;
  }

  [[nodiscard]] Plan plan_shards() override {
    framing_ =
        make_framing(options_.format, options_.recipe.spec(), keys().limits(), source().classes);
    std::uint64_t shards = checked_shard_count();
    if (shards == 0) {
      shards =
          shards_for_size(listing().size(), framing_->record_bytes(), options_.shard_size_bytes);
    }
    return {listing().size(), shards,
            options_.shuffle ? std::optional(options_.seed) : std::nullopt};
  }

  [[nodiscard]] std::uint64_t shard_bytes(std::uint64_t shard) const override {
    return framing_->shard_bytes(plan().shard_records(shard));
  }

  void check_plan(bool /*is_new*/) override {
    const Manifest* others = out().other_splits();
    if (others == nullptr || others->classes == source().classes) return;
    throw InvalidArgument(
        fmt::format("'{}' has splits with other classes ({}) than this one ({})",
                    options_.out.string(), others->classes.size(), source().classes.size()),
        "All splits of a dataset have the same classes. Choose another `out`.");
  }

  /// A finished split may only be met by the build that made it, which then has nothing to do.
  void check_finished(const JobSplit& /*split*/) override {
    check_fits(*out().manifest());
    const SplitEntry& split = *out().finished_split();
    const bool same =
        split.source_fingerprint == listing().fingerprint() &&
        out().manifest()->classes == source().classes && split.max_pixels == options_.max_pixels &&
        split.shuffled == options_.shuffle && (!options_.shuffle || split.seed == options_.seed) &&
        (!split.names || *split.names == keys().limits()) && split.shards.size() == plan().shards();
    if (!same) refuse_finished();
  }

  void note_plan() override {
    BuildEstimate& preview = report_.preview;
    fill_images(preview);
    preview.left_out = source().left_out;
    preview.tensor_bytes = options_.recipe.spec().size_bytes();
    preview.record_bytes = framing_->record_bytes();
    const bool has_pax_keys = options_.format == Format::kTar && !keys().limits().all_fit_ustar;
    std::vector<bool> used(source().classes.size());
    for (std::size_t i = 0; i < listing().size(); ++i) {
      const auto label = static_cast<std::uint64_t>(listing()[i].label);  // -1 becomes large
      if (label < used.size()) used[label] = true;
      if (!has_pax_keys || !preview.pax_key.empty()) continue;
      std::string key = keys().key(i);
      if (key.size() == keys().limits().longest_key) preview.pax_key = std::move(key);
    }
    for (std::size_t i = 0; i < used.size(); ++i) {
      if (!used[i]) preview.empty_classes.push_back(source().classes[i]);
    }
  }

  /// Of all samples, for a part too: the run that finishes sees to the sum.
  [[nodiscard]] std::uint64_t allowed_rejections() const {
    if (options_.fail_on_bad) return 0;
    return static_cast<std::uint64_t>(
        std::floor(static_cast<double>(listing().size()) * options_.max_bad_percent / 100));
  }

  void write(const JobSplit& /*split*/, const std::vector<PendingShard>& pending) override {
    if (pending.empty()) return;
    const auto skipped_before = report_.skipped;
    const ImageInput samples(options_.source, source(), keys(), options_.recipe,
                             options_.max_pixels);
    const ShardRunOutcome outcome = run_shards({.samples = samples,
                                                .plan = plan(),
                                                .framing = *framing_,
                                                .tensor_bytes = options_.recipe.spec().size_bytes(),
                                                .allowed_rejections = allowed_rejections(),
                                                .rejected_before = skipped_before.size()},
                                               pending, progress_, calls());
    report_.converted = outcome.converted;
    // Also those of shards that are not whole: a user who is told of bad files wants to see them
    // all.
    report_.skipped = skipped_before;
    report_.skipped.insert(report_.skipped.end(), outcome.skipped.begin(), outcome.skipped.end());
    report_.skipped_count = report_.skipped.size();
    if (!outcome.too_many_rejections) return;
    report_.status = JobStatus::kTooManyBad;
    if (options_.part_count == 0) out().publish_skipped(report_.skipped);
  }

  [[nodiscard]] bool publish(const std::vector<JobSplit>& splits) override {
    SplitResults made = results(splits.front());
    out().publish_skipped(made.skipped);
    // Parts may each have been within the limit, or an earlier run allowed more.
    if (made.skipped.size() > allowed_rejections()) {
      report_.status = JobStatus::kTooManyBad;
      report_.skipped = std::move(made.skipped);
      report_.skipped_count = report_.skipped.size();
      return false;
    }
    for (ShardEntry& shard : made.shards) shard.columns = framing_->columns(shard.samples);
    SplitEntry entry{.samples = made.samples,
                     .skipped = made.skipped.size(),
                     .seed = options_.shuffle ? options_.seed : 0,
                     .shuffled = options_.shuffle,
                     .max_pixels = options_.max_pixels,
                     .source_fingerprint = listing().fingerprint(),
                     .content_fingerprint = std::move(made.content_fingerprint),
                     .names = keys().limits(),
                     .shards = std::move(made.shards)};
    Manifest dataset{.classes = source().classes,
                     .spec = options_.recipe.spec(),
                     .recipe = options_.recipe,
                     .format = options_.format,
                     .splits = {}};
    dataset.splits.emplace(options_.split, std::move(entry));
    out().publish(std::move(dataset));
    return true;
  }

  [[nodiscard]] OutFolder& out() { return ShardJob::out(options_.split); }

  const BuildOptions& options_;
  BuildReport& report_;
  std::unique_ptr<const Framing> framing_;
};

}  // namespace

BuildEstimate estimate_build(const BuildOptions& options) {
  JobProgress progress;
  BuildReport report;
  BuildJob(options, progress, report).plan_only();
  return std::move(report.preview);
}

BuildReport build(const BuildOptions& options, JobProgress& progress) {
  BuildReport report;
  BuildJob job(options, progress, report);
  job.run();
  job.write_indexes();
  return report;
}

}  // namespace precache
