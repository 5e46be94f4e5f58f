// SPDX-License-Identifier: Apache-2.0
#include "precache/convert/build.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <iterator>
#include <new>
#include <nlohmann/json.hpp>

#include "convert/build/sample_values.hpp"
#include "convert/build/split_rule.hpp"
#include "convert/image/transform/image_transform.hpp"
#include "convert/job/image_job.hpp"
#include "convert/job/shard_formats.hpp"
#include "convert/sidecars/sidecar_file.hpp"
#include "convert/source/csv_targets.hpp"
#include "convert/source/input_files.hpp"
#include "formats/bytes/crc32c.hpp"
#include "formats/bytes/splitmix.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kIdentityVersion = 3;  // changes when equal options give other bytes than before

void validate(const BuildOptions& options) {
  options.recipe.validate();
  if (!(options.max_bad_percent >= 0 && options.max_bad_percent <= 100)) {
    throw InvalidArgument("`max_bad_percent` must be from 0 to 100");
  }
  const auto [index, count] = options.share;
  const bool is_part = options.step == JobStep::kPart;
  if ((is_part && count == 0) || (count != 0 && index >= count)) {
    throw InvalidArgument(fmt::format("`{}` {}/{} does not exist: shares count from 0",
                                      is_part ? "part" : "prepare", index, count),
                          fmt::format("With N shares they are 0/N to (N-1)/N."));
  }
  if (is_part && options.overwrite) {
    throw InvalidArgument(
        "`overwrite` cannot be combined with `part`: parts would delete each other's shards",
        "Set it together with `prepare`, before the parts.");
  }
  if (options.step == JobStep::kPrepare && count != 0 && options.overwrite) {
    throw InvalidArgument("`overwrite` cannot be combined with a share of `prepare`",
                          "Set it together with the last `prepare`, which has no share.");
  }
  const bool is_whole = options.step == JobStep::kWhole || options.step == JobStep::kFinish;
  if (!is_whole && !options.indexes.empty()) {
    throw InvalidArgument(fmt::format("`index` cannot be combined with `{}`: it needs all shards",
                                      is_part ? "part" : "prepare"),
                          "Give it together with `finish`.");
  }
  check_sidecar_kinds(options.indexes, options.format);
  std::error_code error;
  for (const fs::path& file : {options.classes, fs::path(options.labels), options.split_file}) {
    if (!options.overwrite || !fs::equivalent(file, options.out / kManifestName, error)) continue;
    throw InvalidArgument(
        fmt::format("`overwrite` would replace '{}', which this build reads", file.string()),
        "Copy the file to another folder and name the copy.");
  }
}

/// Reads and decodes the images of one thread.
class ImageMaker {
 public:
  ImageMaker(const InputFiles& files, const SampleValues& values, const Recipe& recipe,
             std::uint64_t max_pixels)
      : files_(files),
        reader_(files.reader()),
        transform_(recipe, max_pixels),
        values_(values, max_pixels) {}

  MadeTensor make(const ListedFile& listed, std::span<std::byte> tensor,
                  std::span<std::byte> values) {
    const Source& source = files_.source();
    std::span<const std::byte> bytes;
    if (auto rejection = reader_->read(listed, bytes)) return {.rejection = std::move(rejection)};
    MadeTensor made{.source_crc = values_.read(listed, crc32c::value(bytes))};
    try {
      const SampleForm* form = source.shards.empty() ? nullptr : &source.shards[listed.shard].form;
      made.rejection = form != nullptr && form->kind == SampleForm::Kind::kArray
                           ? transform_.run(bytes, form->array, tensor)
                           : transform_.run(bytes, tensor);
      if (!made.rejection) made.rejection = values_.write(listed, transform_.header(), values);
    } catch (const std::bad_alloc&) {
      // The image may be fine, but its name helps to choose a limit.
      throw IoError("the memory does not suffice for", files_.full_origin(listed), ENOMEM,
                    "Use fewer `jobs`, or a lower `max_pixels` to skip it.");
    }
    made.warned = transform_.warned();
    made.turned = transform_.turned();
    return made;
  }

 private:
  const InputFiles& files_;
  std::unique_ptr<SampleReader> reader_;
  ImageTransform transform_;
  ValueMaker values_;
};

class BuildJob : public ImageJob {
 public:
  BuildJob(const BuildOptions& options, const SplitRule& rule, JobProgress& progress,
           BuildReport& report)
      : ImageJob(options,
                 {.splits = rule.names(),
                  .step = options.step,
                  .share = options.share,
                  .parts = options.parts,
                  .space_hint = "Free some space, choose a smaller `size` or the `dtype` uint8, or "
                                "another `out`."},
                 options.short_keys, progress, report, report.estimate),
        options_(options),
        rule_(rule),
        estimate_(report.estimate) {
    validate(options);
    if (!options.mask.empty()) masks_.emplace(options.mask);
  }

 private:
  [[nodiscard]] Json identity() const override {
    Json json = {{"version", kIdentityVersion},
                 {"recipe", Json::parse(options_.recipe.to_json())},
                 {"seed", options_.shuffle ? Json(options_.seed) : Json()},
                 {"keys", options_.short_keys ? "short" : "full"},
                 {"max_pixels", options_.max_pixels}};
    if (options_.val_fraction) {
      json["val_fraction"] = *options_.val_fraction;
      json["seed_of_splits"] = options_.seed;
    }
    if (!options_.split_file.empty()) json["split_file"] = digest_of(options_.split_file);
    json.update(ImageJob::identity());
    if (has_sizes()) json["size_column"] = true;
    if (masks_) json["mask"] = true;  // the plan has the masks
    return json;
  }

  /// A new split takes the classes of the others.
  [[nodiscard]] Labelling labelling() override {
    Labelling labelling = ImageJob::labelling();
    const Manifest* others = other_splits();
    if (others == nullptr) return labelling;
    if (!options_.classes.empty() && labelling.classes != others->classes) {
      throw InvalidArgument(
          fmt::format("the splits in '{}' have other classes than '{}'", options_.out.string(),
                      options_.classes.string()),
          "All splits of a dataset have the same classes. Leave out `classes` to take those.");
    }
    labelling.classes = others->classes;
    return labelling;
  }

  [[nodiscard]] Source list(Unpacker& unpacker) override {
    Source source = ImageJob::list(unpacker);
    add_csv_targets(source, labelling(), options_.source, known_columns());
    if (masks_) masks_->list();
    return source;
  }

  [[nodiscard]] std::string source_fingerprint(const Listing& samples,
                                               const std::string& of_listing) const override {
    return values_->source_fingerprint(samples, of_listing);
  }

  [[nodiscard]] std::uint64_t stamp_of(const Listing& samples) const override {
    const std::uint64_t stamp = ImageJob::stamp_of(samples);
    return masks_ ? splitmix(stamp ^ masks_->stamp()) : stamp;
  }

  [[nodiscard]] PlanFile::Note note() const override {
    if (!masks_) return {};
    return [this](const ListedFile& sample) { return masks_->note(sample.path); };
  }

  [[nodiscard]] std::vector<JobSplit> make_plan() override {
    values_.emplace(options_.recipe, has_sizes(), source().targets, masks_ ? &*masks_ : nullptr);
    return ImageJob::make_plan();
  }

  [[nodiscard]] SplitSamples divide() override { return rule_.split(listing()); }

  [[nodiscard]] std::vector<JobSplit> plan_splits() override {
    const std::shared_ptr<const Framing> framing =
        make_framing(options_.format, options_.recipe.spec(), facts().limits, source().classes,
                     values_->columns());
    std::vector<JobSplit> splits;
    for (const PlannedSplitFacts& split : facts().splits) {
      std::uint64_t shards = checked_shard_count(split);
      if (shards == 0) {
        shards = shards_for_size(split.samples, framing->record_bytes(), options_.shard_size_bytes);
      }
      Plan plan(split.samples, shards,
                options_.shuffle ? std::optional(options_.seed) : std::nullopt);
      splits.push_back({split.name, std::move(plan), framing});
    }
    return splits;
  }

  [[nodiscard]] Manifest dataset() const override {
    return {.classes = source().classes,
            .spec = options_.recipe.spec(),
            .recipe = options_.recipe,
            .format = options_.format,
            .splits = {}};
  }

  [[nodiscard]] SplitEntry planned_entry(const JobSplit& split) const override {
    return {.seed = options_.shuffle ? options_.seed : 0,
            .shuffled = options_.shuffle,
            .max_pixels = options_.max_pixels,
            .source_fingerprint = fingerprint(split),
            .names = facts().limits,
            .shards = {}};
  }

  void describe_plan() override {
    ImageJob::describe_plan();
    estimate_.ignored = source().ignored;
    estimate_.tensor_bytes = options_.recipe.spec().size_bytes();
    if (!splits().empty()) {
      const Framing& framing = *splits().front().framing;
      estimate_.record_bytes = framing.record_bytes();
      estimate_.columns = framing.named();
      const bool has_pax_keys =
          options_.format == Format::kTar && framing.columns(1).key.type == "pax";
      if (has_pax_keys) estimate_.pax_key = facts().longest_key;
    }
    for (const std::uint64_t number : facts().unused_classes) {
      if (number < source().classes.size()) {
        estimate_.empty_classes.push_back(source().classes[number]);
      }
    }
  }

  /// Of all samples, for a part too: the run that finishes checks the sum.
  [[nodiscard]] std::uint64_t allowed_rejections() const {
    if (options_.fail_on_bad) return 0;
    return static_cast<std::uint64_t>(
        std::floor(static_cast<double>(facts().samples) * options_.max_bad_percent / 100));
  }

  void write(const JobSplit& split, const std::vector<PendingShard>& pending) override {
    if (pending.empty()) return;
    auto skipped = report_.skipped;
    const InputFiles files(options_.source, source());
    OpenSlices slices(*frozen());
    const auto slice_of = [&](std::uint64_t shard) { return slices.of(split.first_slice + shard); };
    const RecordInput samples{
        .name = [&](const PlannedRecord& at) { return name_of(*slice_of(at.shard), at.slot); },
        .origin =
            [&](const PlannedRecord& at) {
              return files.origin(slice_of(at.shard)->file(at.slot));
            },
        .tensor_maker = [&]() -> TensorMaker {
          const auto maker =
              std::make_shared<ImageMaker>(files, *values_, options_.recipe, options_.max_pixels);
          return [&slice_of, maker](const PlannedRecord& at, std::span<std::byte> tensor,
                                    std::span<std::byte> values) {
            const auto slice = slice_of(at.shard);
            return maker->make(slice->file(at.slot), tensor, values);
          };
        }};
    ShardCalls on_shard = calls();
    on_shard.done = [&, done = on_shard.done](const PendingShard& shard, const ShardResult& made) {
      slices.close(split.first_slice + shard.number);
      done(shard, made);
    };
    const ShardRunOutcome outcome = run_shards({.samples = samples,
                                                .plan = split.plan,
                                                .framing = *split.framing,
                                                .tensor_bytes = options_.recipe.spec().size_bytes(),
                                                .allowed_rejections = allowed_rejections(),
                                                .rejected_before = skipped.size()},
                                               pending, progress_, on_shard);
    report_.converted += outcome.converted;
    // Including those of incomplete shards: the user wants to see all bad files.
    for (SkippedSample sample : outcome.skipped) {
      sample.split = split.name;
      skipped.push_back(std::move(sample));
    }
    report_.skipped = std::move(skipped);
    report_.skipped_count = report_.skipped.size();
    std::vector<SkippedSample> in_split;
    std::ranges::copy_if(report_.skipped, std::back_inserter(in_split),
                         [&](const auto& sample) { return sample.split == split.name; });
    report_of(split.name).skipped_count = in_split.size();
    if (!outcome.too_many_rejections) return;
    report_.status = JobStatus::kTooManyBad;
    if (options_.step != JobStep::kWhole) return;
    SkippedReport list = out(split.name).skipped_report();
    for (const SkippedSample& sample : in_split) list.add(sample);
    list.publish();
  }

  /// Each part may have been within the limit, or an earlier run may have allowed more.
  [[nodiscard]] bool accept(const JobSplit& split, SplitResults& made,
                            SkippedReport& skipped) override {
    (void)ImageJob::accept(split, made, skipped);
    rejected_ += made.skipped_count;
    if (rejected_ <= allowed_rejections()) return true;
    report_.status = JobStatus::kTooManyBad;
    return false;
  }

  /// A sample has the CRC of its image and its mask.
  [[nodiscard]] std::function<SampleCrc()> crc_reader(const JobSplit& split) const override {
    return [this, &split, images = ImageJob::crc_reader(split)]() -> SampleCrc {
      const auto maker = std::make_shared<ValueMaker>(*values_, options_.max_pixels);
      return [this, &split, maker, crc_of = images()](std::uint64_t sample) {
        return maker->read(listing()[listed(split, sample)], crc_of(sample));
      };
    };
  }

  [[nodiscard]] bool has_sizes() const {
    return options_.recipe.fit == Fit::kStretch && options_.size_column;
  }

  /// The named columns of other splits.
  [[nodiscard]] std::vector<NamedColumn> known_columns() const {
    std::vector<NamedColumn> columns;
    const Manifest* others = other_splits();
    if (others == nullptr) return columns;
    for (const auto& [name, split] : others->splits) {
      columns.insert(columns.end(), split.columns.begin(), split.columns.end());
    }
    return columns;
  }

  const BuildOptions& options_;
  const SplitRule& rule_;
  BuildEstimate& estimate_;
  std::uint64_t rejected_ = 0;  // of the splits that accept() has seen
  std::optional<MaskFiles> masks_;
  std::optional<SampleValues> values_;  // once the source is listed
};

}  // namespace

BuildEstimate estimate_build(const BuildOptions& options) {
  JobProgress progress;
  BuildReport report;
  const SplitRule rule(options);
  BuildJob(options, rule, progress, report).plan_only();
  return std::move(report.estimate);
}

BuildReport build(const BuildOptions& options, JobProgress& progress) {
  BuildReport report;
  const SplitRule rule(options);
  BuildJob job(options, rule, progress, report);
  job.run();
  const bool is_complete =
      report.status == JobStatus::kComplete || report.status == JobStatus::kAlreadyComplete;
  if (!is_complete || options.indexes.empty()) return report;
  try {
    // `job` still holds the lock of the folder.
    for (const SplitReport& split : report.splits) {
      SidecarReport made = write_sidecars_unlocked(options.out, {options.indexes, split.name});
      std::ranges::move(made.written, std::back_inserter(report.indexes.written));
      std::ranges::move(made.missing, std::back_inserter(report.indexes.missing));
    }
  } catch (Error& error) {
    error.add_hint("The shards are complete; only an index is missing.");
    throw;
  }
  return report;
}

}  // namespace precache
