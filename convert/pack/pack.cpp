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

#include "convert/image/decode/image_kind.hpp"
#include "convert/job/image_job.hpp"
#include "convert/job/shard_formats.hpp"
#include "convert/source/input_files.hpp"
#include "formats/bytes/checked_math.hpp"
#include "formats/bytes/crc32c.hpp"
#include "formats/os/temporary_file.hpp"
#include "formats/shard/encoded_manifest.hpp"
#include "formats/shard/file_kind.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

namespace fs = std::filesystem;

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
      "It has 1 to 16 letters a-z and digits, and is neither cls nor npy. jpg suits readers that "
      "decode by content.");
}

void validate(const PackOptions& options) {
  check_encoded_format(options.format);
  check_image_name(options);
  std::error_code error;
  if (fs::exists(options.out / kManifestName, error)) {
    throw InvalidArgument(fmt::format("'{}' holds a dataset of tensors", options.out.string()),
                          "Choose another `out` for encoded images.");
  }
  if (fs::exists(options.source / kManifestName, error)) {
    throw Unsupported(
        fmt::format("'{}' holds tensors, not encoded images", options.source.string()),
        "precache convert takes tensors.");
  }
}

struct ScopedRemoval {
  ~ScopedRemoval() { ::unlink(path.c_str()); }
  const fs::path& path;
};

class PackJob : public ImageJob {
 public:
  PackJob(const PackOptions& options, JobProgress& progress, PackReport& report)
      : ImageJob(options, {.space_hint = "Make room, or choose another `out`."}, progress, report),
        options_(options),
        report_(report) {
    validate(options);
  }

 private:
  [[nodiscard]] std::string identity() const override {
    using Json = nlohmann::ordered_json;
    Json json = {{"version", kIdentityVersion},
                 {"job", "pack"},
                 {"image_name", options_.image_name},
                 {"seed", options_.seed ? Json(*options_.seed) : Json()}};
    json.update(image_identity());
    return json.dump();
  }

  void check_out() override {}

  /// Which image goes to which shard: by number, or as long as a shard is below the size asked for.
  [[nodiscard]] Plan plan_shards() override {
    for (const SourceShard& shard : source().shards) {
      if (shard.form.kind != SampleForm::Kind::kArray) continue;
      throw Unsupported(
          fmt::format("'{}' holds arrays of pixels, not encoded images", shard.given.path.string()),
          "precache convert takes tensors; precache build takes arrays, too.");
    }
    const std::uint64_t samples = listing().size();
    overhead_ = encoded_overhead_bytes(options_.format, keys().limits());
    if (const auto shards = checked_shard_count()) return {samples, shards, options_.seed};
    const Plan order(samples, 1, options_.seed);
    std::vector<std::uint64_t> shards{0};
    std::uint64_t bytes = 0;
    for (std::uint64_t i = 0; i < samples; ++i) {
      const std::uint64_t record =
          checked_add(listing()[order.record(0, i).sample].size, overhead_);
      if (shards.back() != 0 && checked_add(bytes, record) > options_.shard_size_bytes) {
        shards.push_back(0);
        bytes = 0;
      }
      bytes += record;
      ++shards.back();
    }
    return {shards, options_.seed};
  }

  [[nodiscard]] std::uint64_t shard_bytes(std::uint64_t shard) const override {
    std::uint64_t bytes = checked_mul(plan().shard_records(shard), overhead_);
    for (std::uint64_t slot = 0; slot < plan().shard_records(shard); ++slot) {
      bytes = checked_add(bytes, listing()[plan().record(shard, slot).sample].size);
    }
    return bytes;
  }

  /// The names of the classes, one a line; empty if there are none or lines cannot hold them.
  [[nodiscard]] std::string class_lines() const {
    const auto& classes = source().classes;
    const bool are_lines = std::ranges::none_of(
        classes, [](const std::string& name) { return name.find('\n') != std::string::npos; });
    return classes.empty() || !are_lines ? "" : fmt::format("{}\n", fmt::join(classes, "\n"));
  }

  /// A list of classes that is there without a manifest is the user's; with one, it is that of all
  /// splits.
  void check_plan(bool is_new) override {
    const fs::path path = options_.out / kClassesName;
    const std::string names = class_lines();
    if (!is_new || names.empty() || !fs::exists(path) || as_text(read_file(path)) == names) return;
    const auto& splits = out().encoded().splits;
    if (splits.size() > splits.count(options_.split)) {
      throw InvalidArgument(
          fmt::format("the splits in '{}' have other classes than this one", options_.out.string()),
          "All splits in a folder have the same classes. Choose another `out`.");
    }
    if (!splits.empty()) return;
    throw InvalidArgument(
        fmt::format("refusing to replace '{}': precache did not write it", path.string()),
        "The names of the classes are written there. Move the file away, or choose another "
        "`out`.");
  }

  void check_finished(const JobSplit& /*split*/) override {
    const EncodedSplit& split = out().encoded().splits.at(options_.split);
    if (split.format != options_.format || split.seed != options_.seed ||
        split.image_name != options_.image_name ||
        split.source_fingerprint != listing().fingerprint() ||
        split.shards.size() != plan().shards()) {
      refuse_finished();
    }
  }

  void note_plan() override { fill_images(report_.preview); }

  void write(const JobSplit& /*split*/, const std::vector<PendingShard>& pending) override {
    const InputFiles samples(options_.source, source());
    const ShardCalls on_shard = calls();
    const std::uint64_t samples_before = report_.samples;
    tbb::parallel_for(
        std::size_t{0}, pending.size(), std::size_t{1},
        [&](std::size_t i) {
          if (!progress_.stop) write_shard(pending[i], samples, on_shard);
        },
        tbb::simple_partitioner());
    report_.converted = report_.samples - samples_before;
  }

  void write_shard(const PendingShard& pending, const InputFiles& samples,
                   const ShardCalls& on_shard) {
    ShardResult result;
    const auto reader = samples.reader();
    // Removed unless it gets its final name, also if the run is stopped.
    const ScopedRemoval temporary{pending.temporary};
    const auto shard =
        make_encoded_shard(options_.format, pending.temporary, keys().limits(), source().classes);
    for (std::uint64_t slot = 0; slot < plan().shard_records(pending.number); ++slot) {
      if (progress_.stop) return;
      const std::uint64_t sample = plan().record(pending.number, slot).sample;
      std::span<const std::byte> bytes;
      const auto rejection = read(*reader, sample, bytes);
      result.content += content_term(sample, crc32c::value(bytes));
      if (rejection) {
        result.skipped.push_back({samples.origin(sample), rejection->stage, rejection->reason});
        ++progress_.samples_skipped;
      } else {
        shard->append(image_of(sample, bytes));
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

  [[nodiscard]] std::optional<Rejection> read(SampleReader& reader, std::uint64_t sample,
                                              std::span<const std::byte>& bytes) const {
    if (auto rejection = reader.read(listing()[sample], bytes)) return rejection;
    if (image_kind(bytes) != ImageKind::kOther) return std::nullopt;
    return Rejection{"decode", fmt::format("neither JPEG nor PNG: it is {}", describe_file(bytes))};
  }

  [[nodiscard]] EncodedImage image_of(std::uint64_t sample,
                                      std::span<const std::byte> bytes) const {
    const auto& classes = source().classes;
    const std::int64_t label = listing()[sample].label;
    const auto number = static_cast<std::uint64_t>(label);  // -1 becomes large
    std::string_view extension = image_kind(bytes) == ImageKind::kJpeg ? "jpg" : "png";
    if (!options_.image_name.empty()) extension = options_.image_name;
    return {.name = {keys().key(sample), label},
            .extension = extension,
            .class_name = number < classes.size() ? std::string_view(classes[number]) : "",
            .bytes = bytes};
  }

  [[nodiscard]] bool publish(const std::vector<JobSplit>& splits) override {
    SplitResults made = results(splits.front());
    EncodedSplit split{.format = options_.format,
                       .samples = made.samples,
                       .skipped = made.skipped.size(),
                       .seed = options_.seed,
                       .image_name = options_.image_name,
                       .source_fingerprint = listing().fingerprint(),
                       .content_fingerprint = std::move(made.content_fingerprint),
                       .shards = {}};
    for (const ShardEntry& shard : made.shards) {
      split.shards.push_back({shard.file, shard.samples, shard.bytes, shard.crc32c});
    }
    report_.skipped = std::move(made.skipped);  // they came in the order of threads
    out().publish_skipped(report_.skipped);
    if (const std::string names = class_lines(); !names.empty()) {
      write_file_atomically(options_.out / kClassesName, names);
    }
    out().publish(std::move(split));
    return true;
  }

  [[nodiscard]] OutFolder& out() { return ShardJob::out(options_.split); }

  const PackOptions& options_;
  PackReport& report_;
  std::uint64_t overhead_ = 0;  // of a record, about
};

}  // namespace

PackEstimate estimate_pack(const PackOptions& options) {
  JobProgress progress;
  PackReport report;
  PackJob(options, progress, report).plan_only();
  return std::move(report.preview);
}

PackReport pack(const PackOptions& options, JobProgress& progress) {
  PackReport report;
  PackJob(options, progress, report).run();
  return report;
}

}  // namespace precache
