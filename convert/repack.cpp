// SPDX-License-Identifier: Apache-2.0
#include "precache/convert/repack.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <oneapi/tbb/parallel_for.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <nlohmann/json.hpp>

#include "convert/decode/image_kind.hpp"
#include "convert/disk_space.hpp"
#include "convert/encoded_manifest.hpp"
#include "convert/encoded_source.hpp"
#include "convert/out_folder.hpp"
#include "convert/plan.hpp"
#include "convert/work_folder.hpp"
#include "formats/base/checked.hpp"
#include "formats/base/crc32c.hpp"
#include "formats/encoded_shard.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kIdentityVersion = 1;  // changes when equal options give other bytes than before

void validate(const RepackOptions& options) {
  if (options.source.empty() || options.out.empty()) {
    throw InvalidArgument("SHARDS and OUT may not be empty");
  }
  check_split_name(options.split);
  std::error_code error;
  if (fs::exists(options.out, error) && !fs::is_directory(options.out, error)) {
    throw IoError("cannot write to", options.out, ENOTDIR, "OUT is a folder, or will be made.");
  }
  if (fs::exists(options.out / kManifestName, error)) {
    throw InvalidArgument(fmt::format("'{}' holds a dataset of tensors", options.out.string()),
                          "Choose another OUT for encoded images.");
  }
}

void check_elsewhere(const RepackOptions& options, const EncodedSource& source) {
  const fs::path from = fs::canonical(source.folder());
  const fs::path out = fs::weakly_canonical(fs::absolute(options.out));
  if (std::mismatch(from.begin(), from.end(), out.begin(), out.end()).first != from.end()) return;
  throw InvalidArgument(
      fmt::format("OUT '{}' lies inside '{}'", options.out.string(), source.folder().string()),
      "Choose an OUT outside, or the shards would become part of the source.");
}

/// Which image goes to which shard: by number, or as long as a shard is below the size asked for.
Plan plan_for(const EncodedSource& source, std::uint64_t overhead, const RepackOptions& options) {
  const std::uint64_t samples = source.listing().size();
  if (options.shards > samples) {
    throw InvalidArgument(
        fmt::format("{} shards are more than the {} samples", options.shards, samples));
  }
  if (options.shards != 0) return {samples, options.shards, options.seed};
  const Plan order(samples, 1, options.seed);
  std::vector<std::uint64_t> shards{0};
  std::uint64_t bytes = 0;
  for (std::uint64_t i = 0; i < samples; ++i) {
    const std::uint64_t record =
        checked_add(source.listing()[order.record(0, i).sample].size, overhead);
    if (shards.back() != 0 && checked_add(bytes, record) > options.shard_size_bytes) {
      shards.push_back(0);
      bytes = 0;
    }
    bytes += record;
    ++shards.back();
  }
  return {shards, options.seed};
}

std::string identity_of(const RepackOptions& options, const EncodedSource& source) {
  const Json json = {{"version", kIdentityVersion},
                     {"command", "convert --keep-encoded"},
                     {"source", source.listing().fingerprint()},
                     {"source-shards", source.shards_fingerprint()},
                     {"format", options.format},
                     {"shards", options.shards},
                     {"shard-size", options.shards == 0 ? options.shard_size_bytes : 0},
                     {"seed", options.seed ? Json(*options.seed) : Json()}};
  return json.dump();
}

/// One call of repack(), from the lock to the last shard.
class Repacking {
 public:
  explicit Repacking(const RepackOptions& options)
      : options_(options),
        format_(parse_format(options.format)),
        source_(options),
        overhead_(encoded_overhead_bytes(format_, source_.keys().limits())),
        plan_(plan_for(source_, overhead_, options)),
        out_(options.out, options.split) {
    check_elsewhere(options, source_);
  }

  [[nodiscard]] RepackPreview preview() const {
    RepackPreview preview;
    preview.samples = plan_.records();
    preview.classes = source_.source().classes.size();
    preview.shards = plan_.shards();
    preview.smallest_shard_samples = plan_.records();
    for (std::uint64_t shard = 0; shard < plan_.shards(); ++shard) {
      const std::uint64_t records = plan_.shard_records(shard);
      preview.smallest_shard_samples = std::min(preview.smallest_shard_samples, records);
      preview.largest_shard_samples = std::max(preview.largest_shard_samples, records);
      preview.source_bytes += image_bytes(shard);
      preview.bytes_needed = checked_add(preview.bytes_needed, shard_bytes(shard));
    }
    preview.bytes_free = free_bytes(options_.out);
    return preview;
  }

  RepackReport run(BuildProgress& progress) {
    WorkFolder work(options_.out, options_.split, false);
    report_.preview = preview();
    if (is_finished()) {
      work.remove();
      return std::move(report_);
    }
    prepare(work);
    const auto pending = find_pending(work, progress);
    try {
      tbb::parallel_for(
          std::size_t{0}, pending.size(), std::size_t{1},
          [&](std::size_t i) {
            if (!progress.stop) write_shard(pending[i], work, progress);
          },
          tbb::simple_partitioner());
    } catch (IoError& error) {
      error.add_hint(fmt::format(
          "{} of {} shards are complete; run the same command{} again to continue.",
          report_.shards_done, plan_.shards(), options_.overwrite ? " without --overwrite" : ""));
      throw;
    }
    if (report_.shards_done == plan_.shards()) {
      publish(work);
    } else {
      report_.status = BuildStatus::kInterrupted;
    }
    return std::move(report_);
  }

 private:
  [[nodiscard]] std::uint64_t image_bytes(std::uint64_t shard) const {
    std::uint64_t bytes = 0;
    for (std::uint64_t slot = 0; slot < plan_.shard_records(shard); ++slot) {
      bytes = checked_add(bytes, source_.listing()[plan_.record(shard, slot).sample].size);
    }
    return bytes;
  }
  [[nodiscard]] std::uint64_t shard_bytes(std::uint64_t shard) const {
    return checked_add(image_bytes(shard), checked_mul(plan_.shard_records(shard), overhead_));
  }
  [[nodiscard]] fs::path shard_path(std::uint64_t shard) const {
    return out_.shard_path(shard, extension(format_));
  }

  /// The same request once more changes nothing; another one is refused. Then fills the report.
  bool is_finished() {
    const EncodedManifest manifest = EncodedManifest::read(options_.out);
    const auto found = manifest.splits.find(options_.split);
    if (found == manifest.splits.end() || options_.overwrite) return false;
    const EncodedSplit& split = found->second;
    if (split.format != options_.format || split.seed != options_.seed ||
        split.source_fingerprint != source_.listing().fingerprint() ||
        split.shards.size() != plan_.shards()) {
      throw InvalidArgument(fmt::format("'{}' already holds a finished split '{}'",
                                        options_.out.string(), options_.split),
                            "Use --overwrite to replace it, --split to add another, or another "
                            "OUT.");
    }
    report_.status = BuildStatus::kAlreadyComplete;
    report_.samples = split.samples;
    report_.shards_done = report_.shards_resumed = split.shards.size();
    for (const EncodedShardEntry& shard : split.shards) report_.bytes += shard.bytes;
    return true;
  }

  void prepare(const WorkFolder& work) {
    const File alone = work.lock_preparation();
    const std::string identity = identity_of(options_, source_);
    if (work.is_prepared() && !options_.overwrite) {
      (void)work.load(identity, source_.folder());
      return;
    }
    if (const auto found = out_.shards(); !found.empty() && !options_.overwrite) {
      throw InvalidArgument(
          fmt::format("'{}' is there already and no unfinished conversion", found.front().string()),
          "Use --overwrite to replace it, or another OUT.");
    }
    if (options_.overwrite) {
      EncodedManifest manifest = EncodedManifest::read(options_.out);
      if (manifest.splits.erase(options_.split) != 0) write(manifest);
      out_.discard_split();
    }
    work.freeze(identity, source_.source(), source_.folder());
  }

  std::vector<std::uint64_t> find_pending(const WorkFolder& work, BuildProgress& progress) {
    std::vector<std::uint64_t> pending;
    std::uint64_t needed = 0;
    std::uint64_t left_by_killed_runs = 0;
    for (std::uint64_t shard = 0; shard < plan_.shards(); ++shard) {
      if (const auto result = work.result(shard, shard_path(shard))) {
        ++report_.shards_resumed;
        add(*result);
        continue;
      }
      progress.samples_planned += plan_.shard_records(shard);
      needed = checked_add(needed, shard_bytes(shard));
      left_by_killed_runs += allocated_bytes(work.temporary(shard));
      fs::remove(shard_path(shard));  // a run killed before it noted the result has left it
      pending.push_back(shard);
    }
    check_space(options_.out, needed, left_by_killed_runs, "Make room, or choose another OUT.");
    return pending;
  }

  void add(const ShardResult& result) {
    ++report_.shards_done;
    report_.samples += result.entry.samples;
    report_.bytes += result.entry.bytes;
    report_.skipped.insert(report_.skipped.end(), result.skipped.begin(), result.skipped.end());
  }

  void write_shard(std::uint64_t number, const WorkFolder& work, BuildProgress& progress) {
    ShardResult result;
    EncodedSource::Reader reader(source_);
    const auto shard = make_encoded_shard(format_, work.temporary(number), source_.keys().limits(),
                                          source_.source().classes);
    for (std::uint64_t slot = 0; slot < plan_.shard_records(number); ++slot) {
      if (progress.stop) return;
      const std::uint64_t sample = plan_.record(number, slot).sample;
      std::span<const std::byte> bytes;
      if (const auto rejection = reader.read(sample, bytes)) {
        result.skipped.push_back(
            {std::string(source_.listing()[sample].path), rejection->stage, rejection->reason});
        ++progress.samples_skipped;
      } else {
        shard->append(image_of(sample, bytes));
        ++result.entry.samples;
        progress.bytes_written += bytes.size();
      }
      ++progress.samples_done;
    }
    result.entry.bytes = shard->finish();
    rename_durably(work.temporary(number), shard_path(number));
    const std::scoped_lock lock(mutex_);
    work.save_result(number, result);
    report_.converted += result.entry.samples;
    add(result);
  }

  [[nodiscard]] EncodedImage image_of(std::uint64_t sample,
                                      std::span<const std::byte> bytes) const {
    const auto& classes = source_.source().classes;
    const std::int64_t label = source_.listing()[sample].label;
    const auto number = static_cast<std::uint64_t>(label);  // -1 becomes large
    return {.name = {source_.keys().key(sample), label},
            .extension = image_kind(bytes) == ImageKind::kJpeg ? "jpg" : "png",
            .class_name = number < classes.size() ? std::string_view(classes[number]) : "",
            .bytes = bytes};
  }

  void write(const EncodedManifest& manifest) const {
    if (manifest.splits.empty()) {
      fs::remove(options_.out / kEncodedManifestName);
    } else {
      write_file_atomically(options_.out / kEncodedManifestName, manifest.to_json());
    }
  }

  void publish(WorkFolder& work) {
    EncodedManifest manifest = EncodedManifest::read(options_.out);
    EncodedSplit& split = manifest.splits[options_.split];
    split = {options_.format, 0, 0, options_.seed, source_.listing().fingerprint(), {}};
    report_.skipped.clear();  // they came in the order in which threads were done
    for (std::uint64_t shard = 0; shard < plan_.shards(); ++shard) {
      auto result = work.result(shard, shard_path(shard));
      if (!result) {
        throw IoError("the shard has vanished:", shard_path(shard), 0,
                      "Run the same command again.");
      }
      split.samples += result->entry.samples;
      split.shards.push_back({result->entry.file, result->entry.samples, result->entry.bytes});
      report_.skipped.insert(report_.skipped.end(), result->skipped.begin(), result->skipped.end());
    }
    split.skipped = report_.skipped.size();
    out_.publish_skipped(report_.skipped);
    const auto& classes = source_.source().classes;
    const bool are_lines = std::ranges::none_of(
        classes, [](const std::string& name) { return name.find('\n') != std::string::npos; });
    if (!classes.empty() && are_lines) {
      write_file_atomically(options_.out / kClassesName,
                            fmt::format("{}\n", fmt::join(classes, "\n")));
    }
    write(manifest);
    work.remove();
  }

  const RepackOptions& options_;
  Format format_;
  EncodedSource source_;
  std::uint64_t overhead_;  // of a record, about
  Plan plan_;
  OutFolder out_;
  std::mutex mutex_;  // for the report
  RepackReport report_;
};

}  // namespace

RepackPreview preview_repacking(const RepackOptions& options) {
  validate(options);
  return Repacking(options).preview();
}

RepackReport repack(const RepackOptions& options, BuildProgress& progress) {
  validate(options);
  return Repacking(options).run(progress);
}

}  // namespace precache
