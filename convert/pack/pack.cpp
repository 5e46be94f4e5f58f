// SPDX-License-Identifier: Apache-2.0
#include "precache/convert/pack.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <oneapi/tbb/parallel_for.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "convert/job/image_job.hpp"
#include "convert/job/shard_formats.hpp"
#include "convert/source/csv_targets.hpp"
#include "convert/source/input_files.hpp"
#include "convert/source/source_path.hpp"
#include "formats/bytes/checked_math.hpp"
#include "formats/bytes/crc32c.hpp"
#include "formats/os/temporary_file.hpp"
#include "formats/shard/encoded_manifest.hpp"
#include "formats/shard/file_kind.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kIdentityVersion = 4;  // changes when equal options give other bytes than before
constexpr std::size_t kLongestImageName = 16;

void check_image_name(const PackOptions& options) {
  const std::string& name = options.image_name;
  if (name.empty()) return;
  if (options.format != Format::kTar) {
    throw InvalidArgument(
        "`image_name` applies only to the `format` tar",
        "TFRecord and HDF5 files keep all images in one feature or dataset anyway.");
  }
  const bool is_plain = name.size() <= kLongestImageName && std::ranges::all_of(name, [](char c) {
                          return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
                        });
  if (is_plain && name != "cls" && name != "npy") return;
  throw InvalidArgument(
      fmt::format("`image_name` '{}' cannot be the extension of all images", name),
      "It must have 1 to 16 letters a-z and digits, and be neither cls nor npy. Use jpg for "
      "readers that decode by content.");
}

void validate(const PackOptions& options) {
  check_encoded_format(options.format);
  check_image_name(options);
  std::error_code error;
  if (fs::exists(options.source / kManifestName, error)) {
    throw Unsupported(
        fmt::format("'{}' holds tensors, not encoded images", options.source.string()),
        kUseConvertHint);
  }
}

struct ScopedRemoval {
  ~ScopedRemoval() { ::unlink(path.c_str()); }
  const fs::path& path;
};

class PackJob : public ImageJob {
 public:
  PackJob(const PackOptions& options, JobProgress& progress, PackReport& report)
      : ImageJob(options,
                 {.is_encoded = true, .space_hint = "Free some space, or choose another `out`."},
                 false, progress, report, report.estimate),
        options_(options),
        dropped_columns_(report.estimate.dropped_columns) {
    validate(options);
  }

 private:
  [[nodiscard]] Json identity() const override {
    Json json = {{"version", kIdentityVersion},
                 {"job", "pack"},
                 {"image_name", options_.image_name},
                 {"seed", options_.seed ? Json(*options_.seed) : Json()}};
    json.update(ImageJob::identity());
    return json;
  }

  /// Fills shards in order up to the size asked for, unless their number was given.
  [[nodiscard]] std::vector<JobSplit> plan_splits() override {
    for (const SourceShard& shard : source().shards) {
      if (shard.form.kind != SampleForm::Kind::kArray) continue;
      throw Unsupported(
          fmt::format("'{}' holds arrays of pixels, not encoded images", shard.given.path.string()),
          "Use 'precache convert' for tensors, or 'precache build' for arrays of any kind.");
    }
    dropped_columns_ = csv_target_names(labelling());
    const std::uint64_t samples = facts().samples;
    overhead_ = encoded_overhead_bytes(options_.format, facts().limits);
    if (const auto count = checked_shard_count(facts().splits.front())) {
      return {{options_.split, {samples, count, options_.seed}}};
    }
    if (frozen() != nullptr) {
      std::vector<std::uint64_t> shards;
      for (std::uint64_t i = 0; i < frozen()->shards(); ++i) {
        shards.push_back(frozen()->shard_records(i));
      }
      return {{options_.split, {shards, options_.seed}}};
    }
    const Plan order(samples, 1, options_.seed);
    std::vector<std::uint64_t> shards{0};
    std::uint64_t bytes = 0;
    for (std::uint64_t i = 0; i < samples; ++i) {
      const std::uint64_t record = checked_add(listing()[order.sample(0, i)].size, overhead_);
      if (shards.back() != 0 && checked_add(bytes, record) > options_.shard_size_bytes) {
        shards.push_back(0);
        bytes = 0;
      }
      bytes += record;
      ++shards.back();
    }
    return {{options_.split, {shards, options_.seed}}};
  }

  [[nodiscard]] std::uint64_t shard_bytes(const JobSplit& split,
                                          std::uint64_t shard) const override {
    std::uint64_t bytes = checked_mul(split.plan.shard_records(shard), overhead_);
    if (frozen() != nullptr) return checked_add(bytes, frozen()->source_bytes(shard));
    for (std::uint64_t slot = 0; slot < split.plan.shard_records(shard); ++slot) {
      bytes = checked_add(bytes, listing()[split.plan.sample(shard, slot)].size);
    }
    return bytes;
  }

  /// The names of the classes, one per line; empty if there are none, or if one has a line break.
  [[nodiscard]] std::string class_lines() const {
    const auto& classes = source().classes;
    const bool are_lines = std::ranges::none_of(
        classes, [](const std::string& name) { return name.find('\n') != std::string::npos; });
    return classes.empty() || !are_lines ? "" : fmt::format("{}\n", fmt::join(classes, "\n"));
  }

  /// Without a manifest, an existing list of classes is the user's; with one, all splits share it.
  void check_plan(bool is_new) override {
    const fs::path path = options_.out / kClassesName;
    const std::string names = class_lines();
    if (!is_new || names.empty() || !fs::exists(path) || as_text(read_file(path)) == names) return;
    const auto& splits = out(options_.split).encoded().splits;
    if (splits.size() > splits.count(options_.split)) {
      throw InvalidArgument(fmt::format("the splits in '{}' have other classes than this source",
                                        options_.out.string()),
                            "All splits in a folder have the same classes. Choose another `out`.");
    }
    if (!splits.empty()) return;
    throw InvalidArgument(
        fmt::format("refusing to replace '{}': precache did not write it", path.string()),
        "The names of the classes would be written there. Move the file away, or choose another "
        "`out`.");
  }

  [[nodiscard]] SplitEntry planned_entry(const JobSplit& /*split*/) const override {
    return {.seed = options_.seed.value_or(0),
            .shuffled = options_.seed.has_value(),
            .source_fingerprint = facts().fingerprint,
            .shards = {}};
  }

  [[nodiscard]] EncodedSplit encoded(const SplitEntry& entry) const {
    return {.format = options_.format,
            .samples = entry.samples,
            .skipped = entry.skipped,
            .seed = options_.seed,
            .image_name = options_.image_name,
            .source_fingerprint = entry.source_fingerprint,
            .content_fingerprint = entry.content_fingerprint,
            .shards = entry.shards};
  }

  [[nodiscard]] std::string manifest_json(const std::string& split,
                                          const SplitEntry& entry) const override {
    return EncodedManifest{{{split, encoded(entry)}}}.to_json();
  }

  void write(const JobSplit& split, const std::vector<PendingShard>& pending) override {
    const InputFiles files(options_.source, source());
    const ShardCalls on_shard = calls();
    const std::uint64_t samples_before = report_.samples;
    tbb::parallel_for(
        std::size_t{0}, pending.size(), std::size_t{1},
        [&](std::size_t i) {
          if (!progress_.stop) write_shard(split.plan, pending[i], files, on_shard);
        },
        tbb::simple_partitioner());
    report_.converted = report_.samples - samples_before;
  }

  void write_shard(const Plan& plan, const PendingShard& pending, const InputFiles& files,
                   const ShardCalls& on_shard) {
    if (!on_shard.begin(pending)) {
      progress_.samples_planned -= plan.shard_records(pending.number);
      return;
    }
    ShardResult result;
    const auto reader = files.reader();
    const Slice slice = frozen()->slice(pending.number);
    // Removed unless it gets its final name, including when the run is stopped.
    const ScopedRemoval temporary{pending.temporary};
    const auto shard =
        make_encoded_shard(options_.format, pending.temporary, facts().limits, source().classes);
    for (std::uint64_t slot = 0; slot < plan.shard_records(pending.number); ++slot) {
      if (progress_.stop) return;
      const std::uint64_t sample = plan.sample(pending.number, slot);
      const ListedFile listed = slice.file(slot);
      std::span<const std::byte> bytes;
      const auto rejection = read(*reader, listed, bytes);
      result.content += content_term(sample, crc32c::value(bytes));
      if (rejection) {
        result.skipped.push_back({files.origin(listed), rejection->stage, rejection->reason});
        ++progress_.samples_skipped;
      } else {
        shard->append(image_of(name_of(slice, slot), bytes));
        ++result.entry.samples;
        progress_.bytes_written += bytes.size();
      }
      ++progress_.samples_done;
    }
    const EncodedShard::Written written = shard->finish();
    result.entry.bytes = written.bytes;
    result.entry.crc32c = written.crc32c;
    result.mtime_ns = File(pending.temporary, O_RDONLY).mtime_ns();
    on_shard.save(pending, result);
    rename_durably(pending.temporary, pending.final_path);
    on_shard.done(pending, result);
  }

  [[nodiscard]] std::optional<Rejection> read(SampleReader& reader, const ListedFile& listed,
                                              std::span<const std::byte>& bytes) const {
    if (auto rejection = reader.read(listed, bytes)) return rejection;
    if (is_decoded(image_file_kind(bytes))) return std::nullopt;
    return Rejection{RejectionStage::kDecode,
                     fmt::format("neither JPEG nor PNG: it is {}", describe_file(bytes))};
  }

  [[nodiscard]] EncodedImage image_of(SampleName sample, std::span<const std::byte> bytes) const {
    const auto& classes = source().classes;
    const auto number = static_cast<std::uint64_t>(sample.label);  // -1 becomes large
    std::string_view extension = image_file_kind(bytes) == "JPEG" ? "jpg" : "png";
    if (!options_.image_name.empty()) extension = options_.image_name;
    return {.name = std::move(sample),
            .extension = extension,
            .class_name = number < classes.size() ? std::string_view(classes[number]) : "",
            .bytes = bytes};
  }

  [[nodiscard]] bool accept(const JobSplit& split, SplitResults& made,
                            SkippedReport& skipped) override {
    // In the order of the plan; threads added them in any order.
    report_.skipped = std::move(made.first_skipped);
    (void)ImageJob::accept(split, made, skipped);
    if (const std::string names = class_lines(); !names.empty()) {
      write_file_atomically(options_.out / kClassesName, names);
    }
    return true;
  }

  void publish(std::map<std::string, SplitEntry> entries) override {
    out(options_.split).publish(encoded(entries.at(options_.split)));
  }

  const PackOptions& options_;
  std::vector<std::string>& dropped_columns_;
  std::uint64_t overhead_ = 0;  // about how many bytes a record has apart from the image
};

}  // namespace

PackEstimate estimate_pack(const PackOptions& options) {
  JobProgress progress;
  PackReport report;
  PackJob(options, progress, report).plan_only();
  return std::move(report.estimate);
}

PackReport pack(const PackOptions& options, JobProgress& progress) {
  PackReport report;
  PackJob(options, progress, report).run();
  return report;
}

}  // namespace precache
