// SPDX-License-Identifier: Apache-2.0
#include "precache/convert/pack.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <oneapi/tbb/parallel_for.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <optional>
#include <set>

#include "convert/image/decode/image_kind.hpp"
#include "convert/job/content_fingerprint.hpp"
#include "convert/job/disk_space.hpp"
#include "convert/job/out_folder.hpp"
#include "convert/job/shard_formats.hpp"
#include "convert/job/work_folder.hpp"
#include "convert/pack/pack_plan.hpp"
#include "convert/source/input_files.hpp"
#include "convert/source/source_json.hpp"
#include "convert/source/source_path.hpp"
#include "formats/bytes/checked_math.hpp"
#include "formats/bytes/crc32c.hpp"
#include "formats/os/temporary_file.hpp"
#include "formats/shard/encoded_manifest.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

namespace fs = std::filesystem;

void validate(const PackOptions& options) {
  if (options.source.empty() || options.out.empty()) {
    throw InvalidArgument("SHARDS and OUT may not be empty");
  }
  check_split_name(options.split);
  check_encoded_format(parse_format(options.format));
  std::error_code error;
  if (fs::exists(options.out, error) && !fs::is_directory(options.out, error)) {
    throw IoError("cannot write to", options.out, ENOTDIR, "OUT is a folder, or will be made.");
  }
  if (fs::exists(options.out / kManifestName, error)) {
    throw InvalidArgument(fmt::format("'{}' holds a dataset of tensors", options.out.string()),
                          "Choose another OUT for encoded images.");
  }
  if (fs::exists(options.source / kManifestName, error)) {
    throw Unsupported(fmt::format("'{}' holds tensors, no encoded images", options.source.string()),
                      "Leave out --keep-encoded to convert tensors.");
  }
  check_apart(options.source, options.out);
}

struct ScopedRemoval {
  ~ScopedRemoval() { ::unlink(path.c_str()); }
  fs::path path;
};

/// One call of pack(), from the lock to the last shard.
class Repacking {
 public:
  Repacking(const PackOptions& options, JobProgress& progress)
      : options_(options),
        progress_(progress),
        work_(options.out, options.split, false),
        out_(options.out, options.split) {}

  PackReport run() {
    const EncodedManifest manifest = EncodedManifest::read(options_.out);
    const auto finished = manifest.splits.find(options_.split);
    try {
      if (finished != manifest.splits.end() && !options_.overwrite && !work_.is_replacing()) {
        report_finished(finished->second);
        return std::move(report_);
      }
      prepare();
    } catch (const UnpackingStopped&) {
      report_.status = JobStatus::kInterrupted;
      return std::move(report_);
    }
    report_.preview = preparation_->preview(options_);
    const auto pending = find_pending();
    const InputFiles samples(options_.source, preparation_->source());
    try {
      tbb::parallel_for(
          std::size_t{0}, pending.size(), std::size_t{1},
          [&](std::size_t i) {
            if (!progress_.stop) write_shard(pending[i], samples);
          },
          tbb::simple_partitioner());
    } catch (IoError& error) {
      error.add_hint(
          fmt::format("{} of {} shards are complete; run the same command again to continue.",
                      report_.shards_done, plan().shards()));
      throw;
    }
    if (report_.shards_done == plan().shards()) {
      publish();
    } else {
      report_.status = JobStatus::kInterrupted;
    }
    return std::move(report_);
  }

 private:
  [[nodiscard]] const Plan& plan() const { return preparation_->plan(); }
  [[nodiscard]] const Source& source() const { return preparation_->source(); }
  [[nodiscard]] fs::path shard_path(std::uint64_t shard) const {
    return out_.shard_path(shard, extension(preparation_->format()));
  }

  /// The same request once more changes nothing; another one is refused.
  void report_finished(const EncodedSplit& split) {
    Unpacker unpacker(work_.folder_for_copies(), {progress_.bytes_unpacked, progress_.stop});
    preparation_.emplace(options_, list_source(options_, unpacker));
    if (split.format != options_.format || split.seed != options_.seed ||
        split.image_name != options_.image_name ||
        split.source_fingerprint != preparation_->listing().fingerprint() ||
        split.shards.size() != plan().shards()) {
      throw InvalidArgument(fmt::format("'{}' already holds a finished split '{}'",
                                        options_.out.string(), options_.split),
                            "Use --overwrite to replace it, --split to add another, or another "
                            "OUT.");
    }
    const InputFiles samples(options_.source, source());
    report_.compared = compare_content({.first_shard = options_.out / split.shards.front().file,
                                        .fingerprint = split.content_fingerprint,
                                        .plan = plan_identity(identity_of(options_), source()),
                                        .samples = plan().records(),
                                        .has_times = !source().is_stream(),
                                        .reader = [&] { return samples.crc_reader(); }},
                                       progress_);
    report_.preview = preparation_->preview(options_);
    report_.status = JobStatus::kAlreadyComplete;
    report_.samples = split.samples;
    report_.shards_done = report_.shards_resumed = split.shards.size();
    for (const EncodedShardEntry& shard : split.shards) report_.bytes += shard.bytes;
    work_.remove();
  }

  /// Takes up an unfinished conversion, or begins one.
  void prepare() {
    const File alone = work_.lock_preparation();
    if (work_.is_prepared() && !options_.overwrite) {
      load();
    } else {
      begin();
    }
    if (work_.replaced().empty()) return;
    EncodedManifest manifest = EncodedManifest::read(options_.out);
    // A split that was finished since is not the one that is replaced.
    const bool is_replaced = out_.are_as_listed(finished_shards(manifest), work_.replaced());
    if (is_replaced && manifest.splits.erase(options_.split) != 0) write(manifest);
    out_.discard_split(work_.replaced());
    work_.note_replaced();
  }

  /// The shards of this split that a manifest lists.
  [[nodiscard]] std::set<std::string> finished_shards(const EncodedManifest& manifest) const {
    std::set<std::string> names;
    if (const auto split = manifest.splits.find(options_.split); split != manifest.splits.end()) {
      for (const auto& shard : split->second.shards) names.insert(shard.file);
    }
    return names;
  }

  void load() {
    preparation_.emplace(options_, work_.load(identity_of(options_), options_.source));
  }

  void begin() {
    const EncodedManifest manifest = EncodedManifest::read(options_.out);
    const std::set<std::string> finished = finished_shards(manifest);
    const auto listed = replaceable_shards(manifest, finished);
    Unpacker unpacker(work_.folder_for_copies(), {progress_.bytes_unpacked, progress_.stop});
    preparation_.emplace(options_, list_source(options_, unpacker));
    check_not_in_out(source().shard_files(), options_.out);
    check_classes_file();
    const std::string identity = identity_of(options_);
    // Not if the job is done and something else stands there now, nor for a stream, whose content
    // no plan knows.
    if ((finished.empty() || work_.is_replacing()) && !source().is_stream() &&
        work_.frozen_plan() == plan_identity(identity, source())) {
      try {
        return load();  // --overwrite was interrupted and would make the same shards once more
      } catch (const CorruptData&) {
        // Then it starts over.
      }
    }
    work_.freeze(identity, source(), options_.source, listed);
    work_.take_over_replaced();
    unpacker.keep();
  }

  [[nodiscard]] std::vector<ReplacedFile> replaceable_shards(
      const EncodedManifest& manifest, const std::set<std::string>& finished) const {
    try {
      return out_.replaceable_shards(options_.overwrite, finished);
    } catch (const InvalidArgument&) {
      if (EncodedManifest::read(options_.out).to_json() != manifest.to_json()) {
        throw_finished_meanwhile(options_.out);
      }
      throw;
    }
  }

  std::vector<std::uint64_t> find_pending() {
    std::vector<std::uint64_t> pending;
    std::uint64_t needed = 0;
    for (std::uint64_t shard = 0; shard < plan().shards(); ++shard) {
      if (const auto result = work_.usable_result(shard_path(shard), options_.overwrite)) {
        ++report_.shards_resumed;
        add(*result);
        continue;
      }
      progress_.samples_planned += plan().shard_records(shard);
      needed = checked_add(needed, preparation_->shard_bytes(shard));
      pending.push_back(shard);
    }
    check_space(options_.out, needed, 0, "Make room, or choose another OUT.");
    return pending;
  }

  void add(const ShardResult& result) {
    ++report_.shards_done;
    report_.samples += result.entry.samples;
    report_.bytes += result.entry.bytes;
    report_.skipped.insert(report_.skipped.end(), result.skipped.begin(), result.skipped.end());
  }

  void write_shard(std::uint64_t number, const InputFiles& samples) {
    ShardResult result;
    const auto reader = samples.reader();
    const fs::path final_path = shard_path(number);
    // Removed unless it gets its final name, also if the run is stopped.
    const ScopedRemoval temporary{work_.temporary(final_path)};
    const auto shard = make_encoded_shard(preparation_->format(), temporary.path,
                                          preparation_->keys().limits(), source().classes);
    for (std::uint64_t slot = 0; slot < plan().shard_records(number); ++slot) {
      if (progress_.stop) return;
      const std::uint64_t sample = plan().record(number, slot).sample;
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
    result.mtime_ns = File(temporary.path, O_RDONLY).mtime_ns();
    work_.save_result(final_path, result);
    rename_durably(temporary.path, final_path);
    const std::scoped_lock lock(mutex_);
    report_.converted += result.entry.samples;
    add(result);
  }

  [[nodiscard]] std::optional<Rejection> read(SampleReader& reader, std::uint64_t sample,
                                              std::span<const std::byte>& bytes) const {
    if (auto rejection = reader.read(preparation_->listing()[sample], bytes)) return rejection;
    if (image_kind(bytes) != ImageKind::kOther) return std::nullopt;
    return Rejection{"decode",
                     fmt::format("neither JPEG nor PNG: it is {}", describe_other(bytes))};
  }

  [[nodiscard]] EncodedImage image_of(std::uint64_t sample,
                                      std::span<const std::byte> bytes) const {
    const auto& classes = source().classes;
    const std::int64_t label = preparation_->listing()[sample].label;
    const auto number = static_cast<std::uint64_t>(label);  // -1 becomes large
    std::string_view extension = image_kind(bytes) == ImageKind::kJpeg ? "jpg" : "png";
    if (!options_.image_name.empty()) extension = options_.image_name;
    return {.name = {preparation_->keys().key(sample), label},
            .extension = extension,
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

  /// The names of the classes, one a line; empty if there are none or lines cannot hold them.
  [[nodiscard]] std::string class_lines() const {
    const auto& classes = source().classes;
    const bool are_lines = std::ranges::none_of(
        classes, [](const std::string& name) { return name.find('\n') != std::string::npos; });
    return classes.empty() || !are_lines ? "" : fmt::format("{}\n", fmt::join(classes, "\n"));
  }

  /// A list of classes that is there without a manifest is the user's; with one, it is that of all
  /// splits.
  void check_classes_file() const {
    const fs::path path = options_.out / kClassesName;
    const std::string names = class_lines();
    if (names.empty() || !fs::exists(path) || as_text(read_file(path)) == names) return;
    const auto splits = EncodedManifest::read(options_.out).splits;
    if (std::ranges::any_of(splits,
                            [&](const auto& split) { return split.first != options_.split; })) {
      throw InvalidArgument(
          fmt::format("the splits in '{}' have other classes than this one", options_.out.string()),
          "Splits in one folder have the same classes. Choose another OUT.");
    }
    if (!splits.empty()) return;
    throw InvalidArgument(
        fmt::format("refusing to replace '{}': precache did not write it", path.string()),
        "The names of the classes are written there. Move the file away, or choose another OUT.");
  }

  void publish() {
    EncodedManifest manifest = EncodedManifest::read(options_.out);
    EncodedSplit& split = manifest.splits[options_.split];
    split = {};
    split.format = options_.format;
    split.seed = options_.seed;
    split.image_name = options_.image_name;
    split.source_fingerprint = preparation_->listing().fingerprint();
    std::uint64_t content = 0;
    report_.skipped.clear();  // they came in the order in which threads were done
    for (std::uint64_t shard = 0; shard < plan().shards(); ++shard) {
      const ShardResult result = work_.published_result(shard_path(shard));
      split.samples += result.entry.samples;
      content += result.content;
      const ShardEntry& entry = result.entry;
      split.shards.push_back({entry.file, entry.samples, entry.bytes, entry.crc32c});
      report_.skipped.insert(report_.skipped.end(), result.skipped.begin(), result.skipped.end());
    }
    split.skipped = report_.skipped.size();
    split.content_fingerprint = content_fingerprint(content);
    if (!source().is_stream()) remember_plan(shard_path(0), work_.plan());
    out_.publish_skipped(report_.skipped);
    if (const std::string names = class_lines(); !names.empty()) {
      write_file_atomically(options_.out / kClassesName, names);
    }
    write(manifest);
    work_.remove();
  }

  const PackOptions& options_;
  JobProgress& progress_;
  WorkFolder work_;
  OutFolder out_;
  std::optional<PackPlan> preparation_;
  std::mutex mutex_;  // for the report
  PackReport report_;
};

}  // namespace

PackEstimate estimate_pack(const PackOptions& options) {
  validate(options);
  std::atomic<std::uint64_t> unpacked = 0;
  const std::atomic<bool> stop = false;
  Unpacker unpacker(fs::temp_directory_path(), {unpacked, stop});
  return PackPlan(options, list_source(options, unpacker)).preview(options);
}

PackReport pack(const PackOptions& options, JobProgress& progress) {
  validate(options);
  return Repacking(options, progress).run();
}

}  // namespace precache
