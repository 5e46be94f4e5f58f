// SPDX-License-Identifier: Apache-2.0
#include "precache/convert/reformat.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <tuple>

#include "convert/job/shard_formats.hpp"
#include "convert/job/shard_job.hpp"
#include "convert/reformat/source_crcs.hpp"
#include "convert/reformat/tensor_conversion.hpp"
#include "convert/reformat/tensor_input.hpp"
#include "convert/reformat/tensor_source.hpp"
#include "convert/source/source_path.hpp"
#include "formats/shard/encoded_manifest.hpp"
#include "formats/shard/framing.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kIdentityVersion = 3;  // changes when equal options give other bytes than before
// One file takes what one core can copy to it; so many take what a fast array of disks does.
constexpr std::size_t kShardsAtOnce = 8;

TensorSource open_checked(const ReformatOptions& options) {
  check_job_folders(options.shards, "shards", options.out);
  if (options.split) check_split_name(*options.split);
  std::error_code error;
  if (fs::exists(options.out / kEncodedManifestName, error)) {
    throw InvalidArgument(fmt::format("'{}' holds encoded images", options.out.string()),
                          "Choose another `out` for tensors.");
  }
  TensorSource source = open_tensor_source(options);
  check_not_in_out(source.files, options.out);
  return source;
}

/// One split, before the first tensor is read.
struct PlannedSplit {
  const SourceSplit& source;
  std::unique_ptr<const Framing> framing;
  Plan plan;
};

Plan plan_for(const SourceSplit& split, std::uint64_t record_bytes,
              const ReformatOptions& options) {
  const std::uint64_t samples = split.shards().samples();
  const std::uint64_t count = options.shard_count.value_or(0);
  if (count > samples) {
    throw InvalidArgument(
        fmt::format("`shard_count` must be at most the number of samples of '{}', {}; got {}",
                    split.name(), samples, count));
  }
  const bool keep = !options.shard_count && !options.shard_size_bytes;
  if (keep || samples == 0) return {split.shard_samples(), options.seed};
  return {samples,
          options.shard_count ? count
                              : shards_for_size(samples, record_bytes, *options.shard_size_bytes),
          options.seed};
}

/// All that follows from the shards and the options.
struct ReformatPlan {
  explicit ReformatPlan(const ReformatOptions& options)
      : source(open_checked(options)),
        conversion(source.meaning, options),
        format(options.format.value_or(source.format)) {
    for (const auto& split : source.splits) {
      auto framing =
          make_framing(format, conversion.result().spec, split->limits(), source.classes);
      Plan plan = plan_for(*split, framing->record_bytes(), options);
      splits.push_back({*split, std::move(framing), std::move(plan)});
    }
  }

  TensorSource source;
  TensorConversion conversion;
  Format format;
  std::vector<PlannedSplit> splits;
};

std::vector<std::string> names_of(const ReformatPlan& plan) {
  std::vector<std::string> names;
  for (const PlannedSplit& split : plan.splits) names.push_back(split.source.name());
  return names;
}

class ReformatJob : public ShardJob {
 public:
  ReformatJob(const ReformatOptions& options, const ReformatPlan& plan, JobProgress& progress,
              ReformatReport& report)
      : ShardJob({.source = plan.source.folder,
                  .out = options.out,
                  .work_name = ".convert",  // all splits are one job; no split can be called so
                  .splits = names_of(plan),
                  .overwrite = options.overwrite,
                  .space_hint = "Make room, or choose a smaller `dtype` or another `out`."},
                 progress, report),
        options_(options),
        plan_(plan),
        report_(report) {}

 private:
  [[nodiscard]] std::string identity() const override {
    const auto or_null = [](const auto& value) { return value ? Json(*value) : Json(); };
    const Json json = {{"version", kIdentityVersion},
                       {"job", "convert"},
                       {"shards", plan_.source.fingerprint},
                       {"split", request_.splits},
                       {"format", name(plan_.format)},
                       {"recipe", Json::parse(plan_.conversion.result().recipe.to_json())},
                       {"shard_count", or_null(options_.shard_count)},
                       {"shard_size_bytes", or_null(options_.shard_size_bytes)},
                       {"seed", or_null(options_.seed)},
                       {"image_key", options_.image_key},
                       {"label_key", options_.label_key},
                       {"without_labels", options_.without_labels}};
    return json.dump();
  }

  [[nodiscard]] const PlannedSplit& planned(const std::string& split) const {
    return *std::ranges::find_if(
        plan_.splits, [&](const PlannedSplit& planned) { return planned.source.name() == split; });
  }

  /// All that the manifest will say of the dataset but its splits.
  [[nodiscard]] Manifest dataset() const {
    return {.classes = plan_.source.classes,
            .spec = plan_.conversion.result().spec,
            .recipe = plan_.conversion.result().recipe,
            .format = plan_.format,
            .splits = {}};
  }

  /// What the manifest will say of a split, but for its shards.
  [[nodiscard]] SplitEntry planned_entry(const PlannedSplit& split) const {
    SplitEntry entry = split.source.facts();
    entry.samples = split.plan.records();
    if (options_.seed) {
      entry.seed = *options_.seed;
      entry.shuffled = true;
    }
    return entry;
  }

  void check_fits(const Manifest& found) const {
    const Manifest planned = dataset();
    if (found.format == planned.format && found.spec == planned.spec &&
        found.classes == planned.classes && found.recipe == planned.recipe) {
      return;
    }
    throw InvalidArgument(
        fmt::format("'{}' holds another dataset: {} of {}, recipe {}", options_.out.string(),
                    name(found.format), found.spec.text(), found.recipe.to_json()),
        "All splits of a dataset have one format, recipe and list of classes. Choose another "
        "`out`; `overwrite` replaces splits if no other ones are there.");
  }

  /// What is replaced need not fit.
  void check_out() override {
    const auto& splits = request_.splits;
    const auto& manifest = out(splits.front()).manifest();
    if (!manifest) return;
    for (const auto& [name, entry] : manifest->splits) {
      const bool is_made = std::ranges::find(splits, name) != splits.end();
      if (!is_made || !is_replaced(name)) check_fits(*manifest);
      if (!is_made || is_replaced(name) || is_planned(entry, planned(name))) continue;
      throw InvalidArgument(
          fmt::format("'{}' already holds a finished split '{}'", options_.out.string(), name),
          "Set `overwrite` to replace it, or choose another `out`.");
    }
  }

  /// Whether a finished split is what was planned, as far as a plan tells.
  [[nodiscard]] bool is_planned(const SplitEntry& found, const PlannedSplit& split) const {
    const auto facts = [](const SplitEntry& entry) {
      return std::tie(entry.samples, entry.skipped, entry.seed, entry.shuffled, entry.max_pixels,
                      entry.source_fingerprint);
    };
    const SplitEntry planned = planned_entry(split);
    const bool is_other_content = !found.content_fingerprint.empty() &&
                                  !planned.content_fingerprint.empty() &&
                                  found.content_fingerprint != planned.content_fingerprint;
    if (facts(found) != facts(planned) || is_other_content ||
        found.shards.size() != split.plan.shards()) {
      return false;
    }
    for (std::uint64_t shard = 0; shard < split.plan.shards(); ++shard) {
      const std::uint64_t records = split.plan.shard_records(shard);
      if (found.shards[shard].samples != records ||
          found.shards[shard].columns != split.framing->columns(records)) {
        return false;
      }
    }
    return true;
  }

  // The plan follows from the shards, which the identity names: nothing is listed or frozen.
  [[nodiscard]] Source list(Unpacker& /*unpacker*/) override { return {}; }
  void make_plan(Source /*source*/) override {}
  void check_plan(bool /*is_new*/) override {}
  void check_finished(const JobSplit& /*split*/) override {}
  [[nodiscard]] const Source& source() const override { return nothing_listed_; }
  [[nodiscard]] Format format() const override { return plan_.format; }

  [[nodiscard]] std::vector<JobSplit> plans() const override {
    std::vector<JobSplit> all;
    for (const PlannedSplit& split : plan_.splits) {
      all.push_back({split.source.name(), &split.plan, [&split](std::uint64_t shard) {
                       return split.framing->shard_bytes(split.plan.shard_records(shard));
                     }});
    }
    return all;
  }

  void note_plan() override {
    ReformatEstimate& preview = report_.preview;
    fill(preview);
    preview.classes = plan_.source.classes;
    preview.source_format = plan_.source.format;
    preview.source_spec = plan_.source.meaning.spec;
    preview.source_shards = plan_.source.shards;
    preview.source_bytes = plan_.source.bytes;
    preview.format = plan_.format;
    preview.spec = plan_.conversion.result().spec;
    preview.tensors_stay = plan_.conversion.is_copy();
    for (const PlannedSplit& split : plan_.splits) {
      const auto labels = split.source.labels();
      if (!labels) continue;
      if (!preview.labels) preview.labels = labels;
      preview.labels->smallest = std::min(preview.labels->smallest, labels->smallest);
      preview.labels->largest = std::max(preview.labels->largest, labels->largest);
    }
  }

  /// Of shards without a manifest nothing but their content tells that they are the same.
  [[nodiscard]] std::function<SampleCrc()> crc_reader(const JobSplit& split) const override {
    if (plan_.source.has_manifest) return nullptr;
    const SourceSplit& shards = planned(split.name).source;
    auto check = std::make_shared<SourceCrcs>(shards);
    auto samples = std::make_shared<const TensorInput>(shards, plan_.conversion, *check);
    const std::size_t bytes = plan_.conversion.result().spec.size_bytes();
    return [check, samples, bytes]() -> SampleCrc {
      return [maker = std::shared_ptr<TensorMaker>(samples->tensor_maker()),
              tensor = std::vector<std::byte>(bytes)](std::uint64_t sample) mutable {
        (void)maker->make(sample, tensor);
        return maker->source_crc();
      };
    };
  }

  void write(const JobSplit& split, const std::vector<PendingShard>& pending) override {
    try {
      write(planned(split.name), pending);
    } catch (const CorruptData&) {
      // Shards that are complete may hold what was found to be damaged only later: the next run
      // makes them again.
      if (!keeps_shards()) start_over();
      throw;
    }
  }

  void write(const PlannedSplit& split, const std::vector<PendingShard>& pending) {
    SourceCrcs check(split.source);
    check.check_empty();
    const TensorInput samples(split.source, plan_.conversion, check);
    const ShardRunOutcome outcome =
        run_shards({.samples = samples,
                    .plan = split.plan,
                    .framing = *split.framing,
                    .tensor_bytes = plan_.conversion.result().spec.size_bytes(),
                    .allowed_rejections = 0,
                    .rejected_before = 0,
                    .shards_at_once = kShardsAtOnce},
                   pending, progress_, calls());
    report_.converted += outcome.converted;
    if (keeps_shards()) return;
    check.check_rest(progress_.stop);
    if (progress_.stop) report_.status = JobStatus::kInterrupted;
  }

  /// Whether each shard is made of one shard, which is found to be whole before it is committed.
  [[nodiscard]] bool keeps_shards() const {
    return !options_.seed && !options_.shard_count && !options_.shard_size_bytes;
  }

  [[nodiscard]] bool publish(const std::vector<JobSplit>& splits) override {
    Manifest manifest = dataset();
    for (const JobSplit& split : splits) {
      const PlannedSplit& planned_split = planned(split.name);
      SplitResults made = results(split);
      for (ShardEntry& shard : made.shards) {
        shard.columns = planned_split.framing->columns(shard.samples);
      }
      SplitEntry& entry = manifest.splits[split.name];
      entry = planned_entry(planned_split);
      entry.shards = std::move(made.shards);
      if (plan_.source.has_manifest) {
        out(split.name)
            .publish_skipped_lines(OutFolder(plan_.source.folder, split.name).skipped_lines());
      } else {
        entry.content_fingerprint = std::move(made.content_fingerprint);
      }
    }
    out(splits.front().name).publish(std::move(manifest));
    return true;
  }

  const ReformatOptions& options_;
  const ReformatPlan& plan_;
  ReformatReport& report_;
  const Source nothing_listed_;
};

}  // namespace

ReformatEstimate estimate_reformat(const ReformatOptions& options) {
  JobProgress progress;
  ReformatReport report;
  const ReformatPlan plan(options);
  ReformatJob(options, plan, progress, report).plan_only();
  return std::move(report.preview);
}

ReformatReport reformat(const ReformatOptions& options, JobProgress& progress) {
  ReformatReport report;
  const ReformatPlan plan(options);
  ReformatJob(options, plan, progress, report).run();
  return report;
}

}  // namespace precache
