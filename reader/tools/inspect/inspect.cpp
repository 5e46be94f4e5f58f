// SPDX-License-Identifier: Apache-2.0
#include "precache/tools/inspect.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>

#include "formats/bytes/inflate.hpp"
#include "formats/bytes/number_text.hpp"
#include "formats/hdf5/helper/helper_client.hpp"
#include "formats/os/bus_fault.hpp"
#include "formats/os/file.hpp"
#include "formats/shard/contents_survey.hpp"
#include "formats/shard/file_kind.hpp"
#include "formats/shard/scan.hpp"
#include "precache/formats/error.hpp"
#include "precache/formats/permutation.hpp"
#include "reader/shards/open_shards.hpp"
#include "reader/shards/shard_listing.hpp"
#include "reader/tools/inspect/inspect_samples.hpp"
#include "reader/tools/inspect/raw_messages.hpp"

namespace precache {
namespace {

constexpr std::uint64_t kThirdPartyFilesRead = 16;
constexpr std::size_t kHeadBytes = std::size_t{8} << 20;  // of a compressed file

/// Collects the facts about one path, step by step.
class Inspector {
 public:
  Inspector(const std::filesystem::path& path, const InspectOptions& options)
      : options_(options),
        progress_(options.progress != nullptr ? *options.progress : no_progress_),
        tfrecord_(options.records != nullptr ? options.records : &raw_messages_) {
    facts_.path = path;
    open_options_.helper = options.helper;
  }

  Inspection run() && {
    listed_ = list_shards(facts_.path, options_.split);
    facts_.files = listed_.size();
    note_splits();
    describe_manifest();
    read_shards();
    describe_kind();
    open_samples();
    return std::move(facts_);
  }

 private:
  /// Adds damage and unsupported content that `call` throws to the facts. System errors pass.
  template <typename Call>
  void collect_errors(const Call& call) {
    try {
      call();
    } catch (const CorruptData& error) {
      note_fault(error.path(), error.offset(), error.reason());
    } catch (const Unsupported& error) {
      note_unsupported(error.what());
    }
  }

  void note_unsupported(std::string reason) {
    // With one file, its name need not be repeated.
    const std::string file = "'" + listed_.front().path().string() + "' ";
    if (listed_.size() == 1 && reason.starts_with(file)) reason.replace(0, file.size(), "it ");
    add_once(facts_.unsupported_reasons, std::move(reason));
  }

  /// Adds a fault once: the survey of a file and the scan after it may fail at the same byte.
  void note_fault(std::filesystem::path file, std::optional<std::uint64_t> offset,
                  std::string reason) {
    add_once(facts_.faults, {std::move(file), std::nullopt, offset, std::move(reason)});
  }

  template <typename Item>
  static void add_once(std::vector<Item>& items, std::type_identity_t<Item> item) {
    if (std::ranges::find(items, item) == items.end()) items.push_back(std::move(item));
  }

  /// Notes that names of shards without a manifest mean several splits, as a reader takes one.
  void note_splits() {
    std::vector<std::filesystem::path> paths;
    for (const ListedShard& shard : listed_) {
      if (!shard.known()) paths.push_back(shard.path());
    }
    std::error_code ignored;
    const NameGroups groups = groups_by_name(paths);
    if (groups.size() < 2 || !std::filesystem::is_directory(facts_.path, ignored)) return;
    note_unsupported(
        fmt::format("by their names, its shards belong to {} splits: {}; the facts describe all of "
                    "them together",
                    groups.size(), joined_keys(groups)));
  }

  void describe_manifest() {
    const Manifest* const manifest = listed_.front().manifest.get();
    const bool is_one = std::ranges::all_of(
        listed_, [&](const ListedShard& shard) { return shard.manifest.get() == manifest; });
    if (manifest == nullptr || !is_one) return;
    facts_.has_manifest = true;
    facts_.recipe = manifest->recipe;
    facts_.spec = manifest->spec;
    for (const auto& [split_name, split] : manifest->splits) {
      if (options_.split && *options_.split != split_name) continue;
      SplitFacts facts{.name = split_name,
                       .samples = split.samples,
                       .files = split.shards.size(),
                       .skipped = split.skipped,
                       .seed = split.seed,
                       .shuffled = split.shuffled,
                       .columns = split.columns};
      for (const ShardEntry& shard : split.shards) facts.bytes += shard.bytes;
      facts_.splits.push_back(std::move(facts));
    }
  }

  void read_shards() {
    std::vector<bool> is_read(listed_.size(), facts_.has_manifest || options_.all);
    for (const std::uint64_t i : spread(listed_.size(), kThirdPartyFilesRead)) is_read[i] = true;
    for (std::size_t i = 0; i < listed_.size(); ++i) {
      if (is_read[i] && listed_[i].entry == nullptr) ++progress_.files_planned;
    }
    for (std::size_t i = 0; i < listed_.size(); ++i) {
      const auto bytes = find_size(listed_[i]);
      if (!bytes) continue;
      facts_.bytes += *bytes;
      if (!is_read[i]) continue;
      ++facts_.files_read;
      facts_.bytes_read += *bytes;
      collect_errors([&] { read_shard(listed_[i]); });
      if (listed_[i].entry == nullptr) ++progress_.files_done;
    }
    if (has_tar_) facts_.tar = tar_.result();
    if (has_tfrecord_) facts_.tfrecord = tfrecord_.result();
  }

  /// The size of a shard; none if its manifest lists it and it is missing or has another size.
  std::optional<std::uint64_t> find_size(const ListedShard& listed) {
    const auto state = state_at(listed.path(), Ask::kByStat);
    if (!state && !listed.known()) throw IoError("cannot open", listed.path(), ENOENT);
    if (!state) {
      note_fault(listed.path(), std::nullopt, kMissingShard);
      return std::nullopt;
    }
    const auto cut = find_cut(listed, state->bytes);
    if (cut) note_fault(listed.path(), cut->offset, cut->reason);
    return cut ? std::nullopt : std::optional(state->bytes);
  }

  void read_shard(const ListedShard& listed) {
    if (listed.entry == nullptr) return inspect_file(listed);
    note_format(listed.manifest->format);
    keep(open_shard(listed, open_options_), listed);
  }

  void keep(ShardSet::IndexedShard shard, const ListedShard& listed) {
    if (classes_.empty()) {
      classes_ = listed.entry != nullptr ? listed.manifest->classes : shard.index.classes;
    }
    facts_.samples = facts_.samples.value_or(0) + shard.index.samples;
    shards_.push_back(std::move(shard));
  }

  /// Inspects a file without a manifest of tensors. It is opened only here: samples and pictures
  /// are read from the same mapping, unless there are too many files.
  void inspect_file(const ListedShard& listed) {
    auto mapped = std::make_shared<const MappedShard>(listed.path());
    const Format format = format_of(*mapped);
    note_format(format);
    if (survey_is_cut(format, *mapped)) return;
    ShardSet::IndexedShard shard{std::filesystem::absolute(listed.path()).string(),
                                 scan_mapped(*mapped, listed, open_options_), mapped->state()};
    if (shards_.size() < kThirdPartyFilesRead) shard.mapped = std::move(mapped);
    keep(std::move(shard), listed);
  }

  /// Surveys a file. Returns true for a truncated archive: the samples before the damage count, and
  /// it is not opened for reading.
  bool survey_is_cut(Format format, const MappedShard& mapped) {
    std::optional<CutShard> cut;
    collect_errors([&] {
      try {
        survey(format, mapped);
      } catch (const CorruptData&) {
        if (format == Format::kTar) cut = find_cut(mapped.bytes(), mapped.path());
        if (!cut) throw;
      }
    });
    mapped.check();
    if (!cut) return false;
    facts_.samples = facts_.samples.value_or(0) + cut->samples;
    note_fault(mapped.path(), cut->offset, cut->reason);
    return true;
  }

  /// Throws the Unsupported of detect_format, after adding what is known about the file.
  Format format_of(const MappedShard& mapped) {
    try {
      return detect_format(mapped.bytes(), mapped.path());
    } catch (const Unsupported&) {
      const FileKind kind = file_kind(mapped.bytes());
      if (kind.is_compressed()) {
        facts_.compression = kind.name;
        if (kind.group == FileKind::Group::kDeflated) inspect_compressed(mapped);
      } else {
        facts_.content = kind.name;
      }
      throw;
    }
  }

  /// Surveys the beginning of the content of a file that gzip or zlib compressed.
  void inspect_compressed(const MappedShard& mapped) {
    const InflatedHead head = inflate_head(mapped.bytes(), kHeadBytes);
    try {
      const Format format = detect_format(head.bytes, mapped.path().stem());
      if (format == Format::kHdf5) return;  // the beginning of HDF5 is not enough
      note_format(format);
      survey_stream(format, head.bytes, mapped.path());
    } catch (const Error&) {  // the head ends before the file does
    }
    if (head.is_damaged) {
      note_fault(mapped.path(), std::nullopt,
                 fmt::format("the {} stream is broken or ends too early", facts_.compression));
    }
    if (!head.is_whole) {
      facts_.contents_extent =
          fmt::format("the first {} of the decompressed content", size_text(head.bytes.size()));
    }
  }

  void survey(Format format, const MappedShard& mapped) {
    if (format != Format::kHdf5) return survey_stream(format, mapped.bytes(), mapped.path());
    if (!facts_.hdf5) {
      facts_.hdf5 = hdf5::survey_in_helper(options_.helper, mapped.path(), mapped.state().bytes);
    }
  }

  /// REQUIRES: `format` is tar or TFRecord.
  void survey_stream(Format format, std::span<const std::byte> bytes,
                     const std::filesystem::path& path) {
    const bool is_tar = format == Format::kTar;
    (is_tar ? has_tar_ : has_tfrecord_) = true;
    is_tar ? tar_.add(bytes, path) : tfrecord_.add(bytes, path);
  }

  void note_format(Format format) {
    const std::string text(name(format));
    facts_.format = facts_.format.empty() || facts_.format == text ? text : "mixed";
  }

  void describe_kind() {
    using Kind = Inspection::Kind;
    std::error_code ignored;
    const bool is_file = std::filesystem::is_regular_file(facts_.path, ignored) &&
                         facts_.path.filename() != kManifestName;
    if (facts_.has_manifest && !is_file) {
      facts_.kind = Kind::kDataset;
    } else if (facts_.format.empty() && facts_.compression.empty()) {
      facts_.kind = Kind::kFile;
    } else {
      facts_.kind = listed_.size() == 1 ? Kind::kShard : Kind::kShards;
    }
    if (facts_.kind != Kind::kDataset) facts_.splits.clear();
    std::string& extent = facts_.contents_extent;
    if (!extent.empty()) return;
    if (facts_.hdf5 && facts_.files > 1) {
      extent = "the first file";
    } else if (facts_.files_read < facts_.files) {
      extent = fmt::format("{} of {} files", facts_.files_read, facts_.files);
    } else if (!facts_.faults.empty()) {
      extent = "the part before the damage";
    }
  }

  void open_samples() {
    if (shards_.empty()) {
      facts_.access.reason = !facts_.unsupported_reasons.empty()
                                 ? facts_.unsupported_reasons.front()
                             : !facts_.faults.empty() ? "it is damaged"
                                                      : "it has no shards";
      return;
    }
    collect_errors([&] {
      const auto set =
          std::make_shared<const ShardSet>(std::move(shards_), std::move(classes_), OpenOptions{});
      facts_.dataset = open_dataset(set);
      facts_.spec = set->spec();
      describe_samples(*set, options_, progress_, facts_);
    });
  }

  const InspectOptions& options_;
  OpenOptions open_options_;
  InspectProgress no_progress_;
  InspectProgress& progress_;
  Inspection facts_;
  std::vector<ListedShard> listed_;
  std::vector<ShardSet::IndexedShard> shards_;
  std::vector<std::string> classes_;
  tar::ContentsSurvey tar_;
  RawMessages raw_messages_;
  tfrecord::ContentsSurvey tfrecord_;
  bool has_tar_ = false;
  bool has_tfrecord_ = false;
};

}  // namespace

std::optional<std::uint64_t> Inspection::overhead_bytes() const {
  std::uint64_t tensors = 0;
  if (!spec || !samples || __builtin_mul_overflow(spec->size_bytes(), *samples, &tensors) ||
      tensors > bytes_read || tensors == 0) {
    return std::nullopt;
  }
  return bytes_read - tensors;
}

Inspection inspect(const std::filesystem::path& path, const InspectOptions& options) {
  bus_fault::install_handler();
  return Inspector(path, options).run();
}

std::vector<std::uint64_t> spread(std::uint64_t total, std::uint64_t count) {
  std::vector<std::uint64_t> numbers(std::min(total, count));
  const Permutation order(std::max<std::uint64_t>(total, 1), 0);
  for (std::uint64_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = numbers.size() == total ? i : order(i);
  }
  std::ranges::sort(numbers);
  return numbers;
}

}  // namespace precache
