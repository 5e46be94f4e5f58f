// SPDX-License-Identifier: Apache-2.0
#include "precache/convert/reformat.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "convert/job/shard_formats.hpp"
#include "convert/job/shard_job.hpp"
#include "convert/reformat/tensor_conversion.hpp"
#include "convert/reformat/tensor_input.hpp"
#include "convert/reformat/tensor_source.hpp"
#include "convert/source/source_path.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kIdentityVersion = 3;  // changes when equal options give other bytes than before
// One file is limited by one core's copying; this many keep a fast disk array busy.
constexpr std::size_t kShardsAtOnce = 8;

TensorSource open_checked(const ReformatOptions& options) {
  check_job_folders(options.shards, "shards", options.out, false);
  if (options.split) check_split_name(*options.split);
  TensorSource source = open_tensor_source(options);
  check_not_in_out(source.files, options.out);
  return source;
}

Plan plan_for(const SourceSplit& split, std::uint64_t record_bytes,
              const ReformatOptions& options) {
  const std::uint64_t samples = split.shards().samples();
  const std::uint64_t count = options.shard_count.value_or(0);
  if (count > samples) {
    throw InvalidArgument(
        fmt::format("`shard_count` must be at most {}, the number of samples of '{}', got {}",
                    samples, split.name(), count));
  }
  const bool keep = !options.shard_count && !options.shard_size_bytes;
  if (keep || samples == 0) return {split.shard_samples(), options.seed};
  return {samples,
          options.shard_count ? count
                              : shards_for_size(samples, record_bytes, *options.shard_size_bytes),
          options.seed};
}

std::vector<std::string> names_of(const TensorSource& source) {
  std::vector<std::string> names;
  for (const auto& split : source.splits) names.push_back(split->name());
  return names;
}

class ReformatJob : public ShardJob {
 public:
  ReformatJob(const ReformatOptions& options, const TensorSource& source, JobProgress& progress,
              ReformatReport& report)
      : ShardJob({.source = source.folder,
                  .out = options.out,
                  .work_name = ".convert",  // all splits are one job; no split can be called so
                  .splits = names_of(source),
                  .format = options.format.value_or(source.format),
                  .overwrite = options.overwrite,
                  .space_hint = "Free some space, or choose a smaller `dtype` or another `out`.",
                  .finished_hint = "Set `overwrite` to replace it, or choose another `out`."},
                 progress, report, report.estimate),
        options_(options),
        shards_(source),
        conversion_(source.meaning, options),
        estimate_(report.estimate) {}

 private:
  [[nodiscard]] Json identity() const override {
    const auto or_null = [](const auto& value) { return value ? Json(*value) : Json(); };
    return {{"version", kIdentityVersion},
            {"job", "convert"},
            {"shards", shards_.fingerprint},
            {"split", request_.splits},
            {"format", name(request_.format)},
            {"recipe", Json::parse(conversion_.result().recipe.to_json())},
            {"shard_count", or_null(options_.shard_count)},
            {"shard_size_bytes", or_null(options_.shard_size_bytes)},
            {"seed", or_null(options_.seed)},
            {"image_key", options_.image_key},
            {"label_key", options_.label_key},
            {"without_labels", options_.without_labels}};
  }

  [[nodiscard]] const SourceSplit& source_of(const JobSplit& split) const {
    return **std::ranges::find(shards_.splits, split.name,
                               [](const auto& source) { return source->name(); });
  }

  [[nodiscard]] std::vector<JobSplit> make_plan() override {
    std::vector<JobSplit> splits;
    for (const auto& split : shards_.splits) {
      std::shared_ptr<const Framing> framing =
          make_framing(request_.format, conversion_.result().spec, split->limits(), shards_.classes,
                       split->facts().columns);
      Plan plan = plan_for(*split, framing->record_bytes(), options_);
      splits.push_back({split->name(), std::move(plan), std::move(framing)});
    }
    return splits;
  }

  [[nodiscard]] Manifest dataset() const override {
    return {.classes = shards_.classes,
            .spec = conversion_.result().spec,
            .recipe = conversion_.result().recipe,
            .format = request_.format,
            .splits = {}};
  }

  [[nodiscard]] SplitEntry planned_entry(const JobSplit& split) const override {
    SplitEntry entry = source_of(split).facts();
    if (options_.seed) {
      entry.seed = *options_.seed;
      entry.shuffled = true;
    }
    return entry;
  }

  void describe_plan() override {
    estimate_.classes = shards_.classes;
    estimate_.source_format = shards_.format;
    estimate_.source_spec = shards_.meaning.spec;
    estimate_.source_shards = shards_.shards;
    estimate_.source_bytes = shards_.bytes;
    estimate_.format = request_.format;
    estimate_.spec = conversion_.result().spec;
    estimate_.tensors_stay = conversion_.is_copy();
    estimate_.dropped_columns = shards_.dropped_columns;
    for (const auto& split : shards_.splits) {
      const auto labels = split->labels();
      if (!labels) continue;
      if (!estimate_.labels) estimate_.labels = labels;
      estimate_.labels->smallest = std::min(estimate_.labels->smallest, labels->smallest);
      estimate_.labels->largest = std::max(estimate_.labels->largest, labels->largest);
    }
  }

  /// Without a manifest, only their content shows whether shards are the same.
  [[nodiscard]] std::function<SampleCrc()> crc_reader(const JobSplit& split) const override {
    if (shards_.has_manifest) return nullptr;
    const SourceSplit& source = source_of(split);
    const auto check = std::make_shared<SourceCrcs>(source);
    return [this, &source, check]() -> SampleCrc {
      return [maker = tensor_maker(source, conversion_, *check),
              tensor = std::vector<std::byte>(conversion_.result().spec.size_bytes())](
                 std::uint64_t sample) mutable {
        return maker({.sample = sample}, tensor, {}).source_crc;
      };
    };
  }

  void write(const JobSplit& split, const std::vector<PendingShard>& pending) override try {
    convert(split, pending);
  } catch (const CorruptData&) {
    // Complete shards may hold data that was found to be damaged only later: the next run makes
    // them again.
    if (!keeps_shards()) start_over();
    throw;
  }

  void convert(const JobSplit& split, const std::vector<PendingShard>& pending) {
    const SourceSplit& source = source_of(split);
    SourceCrcs check(source);
    check.check_empty();
    const RecordInput samples{
        .name = [&](const PlannedRecord& record) { return source.sample_name(record.sample); },
        .origin =
            [&](const PlannedRecord& record) { return source.sample_name(record.sample).key; },
        .tensor_maker = [&] { return tensor_maker(source, conversion_, check); }};
    const ShardRunOutcome outcome =
        run_shards({.samples = samples,
                    .plan = split.plan,
                    .framing = *split.framing,
                    .tensor_bytes = conversion_.result().spec.size_bytes(),
                    .allowed_rejections = 0,
                    .rejected_before = 0,
                    .shards_at_once = kShardsAtOnce},
                   pending, progress_, calls());
    report_.converted += outcome.converted;
    if (keeps_shards()) return;
    check.check_rest(progress_.stop);
    if (progress_.stop) report_.status = JobStatus::kInterrupted;
  }

  /// Whether each shard is made from one source shard, which is checked before the new one is
  /// committed.
  [[nodiscard]] bool keeps_shards() const {
    return !options_.seed && !options_.shard_count && !options_.shard_size_bytes;
  }

  /// The manifest keeps the facts about the images that the tensors were made from.
  [[nodiscard]] bool accept(const JobSplit& /*split*/, SplitResults& made,
                            SkippedReport& skipped) override {
    if (!shards_.has_manifest) return true;
    made.content_fingerprint.clear();
    skipped.add_lines_of(shards_.folder);
    skipped.publish();
    return true;
  }

  const ReformatOptions& options_;
  const TensorSource& shards_;
  const TensorConversion conversion_;
  ReformatEstimate& estimate_;
};

}  // namespace

ReformatEstimate estimate_reformat(const ReformatOptions& options) {
  JobProgress progress;
  ReformatReport report;
  const TensorSource source = open_checked(options);
  ReformatJob(options, source, progress, report).plan_only();
  return std::move(report.estimate);
}

ReformatReport reformat(const ReformatOptions& options, JobProgress& progress) {
  ReformatReport report;
  const TensorSource source = open_checked(options);
  ReformatJob(options, source, progress, report).run();
  return report;
}

}  // namespace precache
