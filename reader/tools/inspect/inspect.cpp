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
#include "formats/os/file_state.hpp"
#include "formats/shard/file_kind.hpp"
#include "formats/shard/scan.hpp"
#include "formats/tar/tar_contents.hpp"
#include "formats/tfrecord/tfrecord_contents.hpp"
#include "precache/formats/error.hpp"
#include "precache/formats/permutation.hpp"
#include "reader/shards/cut_shard.hpp"
#include "reader/shards/open_shards.hpp"
#include "reader/tools/inspect/inspect_samples.hpp"
#include "reader/tools/inspect/raw_messages.hpp"

namespace precache {
namespace {

constexpr std::uint64_t kForeignFilesRead = 16;
constexpr std::size_t kHeadBytes = std::size_t{8} << 20;  // of a compressed file

/// Finds out what one path holds, step by step.
class Inspector {
 public:
  Inspector(const std::filesystem::path& path, const InspectOptions& options)
      : options_(options),
        progress_(options.progress != nullptr ? *options.progress : no_progress_),
        tfrecord_(options.records != nullptr ? options.records : &raw_messages_) {
    facts_.path = path;
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
  /// Notes damage and unsupported content that `call` throws; failures of the system pass.
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
    // Of one file it is clear which is meant.
    const std::string file = "'" + listed_.front().path.string() + "' ";
    if (listed_.size() == 1 && reason.starts_with(file)) reason.replace(0, file.size(), "it ");
    add_once(facts_.unsupported_reasons, std::move(reason));
  }

  /// The survey of a file and the scan after it may fail at the same byte.
  void note_fault(std::filesystem::path file, std::optional<std::uint64_t> offset,
                  std::string reason) {
    add_once(facts_.faults, {std::move(file), std::nullopt, offset, std::move(reason)});
  }

  template <typename Item>
  static void add_once(std::vector<Item>& items, std::type_identity_t<Item> item) {
    if (std::ranges::find(items, item) == items.end()) items.push_back(std::move(item));
  }

  /// Names may tell of splits where no manifest does; a reader takes one of them.
  void note_splits() {
    std::vector<std::filesystem::path> paths;
    for (const ListedShard& shard : listed_) {
      if (!shard.known_bytes()) paths.push_back(shard.path);
    }
    std::error_code ignored;
    const NameGroups groups = groups_by_name(paths);
    if (groups.size() < 2 || !std::filesystem::is_directory(facts_.path, ignored)) return;
    std::vector<std::string> names;
    for (const auto& [split_name, shards] : groups) names.push_back(split_name);
    note_unsupported(
        fmt::format("by their names, its shards belong to {} splits: {}; the facts describe all of "
                    "them together",
                    names.size(), fmt::join(names, ", ")));
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
                       .shuffled = split.shuffled};
      for (const ShardEntry& shard : split.shards) facts.bytes += shard.bytes;
      facts_.splits.push_back(std::move(facts));
    }
  }

  void read_shards() {
    std::vector<bool> is_read(listed_.size(), facts_.has_manifest || options_.all);
    for (const std::uint64_t i : spread(listed_.size(), kForeignFilesRead)) is_read[i] = true;
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

  /// None if a shard of a manifest is not there, or of another size.
  std::optional<std::uint64_t> find_size(const ListedShard& listed) {
    const auto state = state_at(listed.path, Ask::kByStat);
    if (!state && !listed.known_bytes()) throw IoError("cannot open", listed.path, ENOENT);
    if (!state) {
      note_fault(listed.path, std::nullopt, kMissingShard);
      return std::nullopt;
    }
    const auto cut = find_cut(listed, state->bytes);
    if (cut) note_fault(listed.path, cut->offset, cut->reason);
    return cut ? std::nullopt : std::optional(state->bytes);
  }

  void read_shard(const ListedShard& listed) {
    if (listed.entry == nullptr) return inspect_file(listed);
    note_format(std::string(name(listed.manifest->format)));
    keep(open_shard(listed, open_options()), listed);
  }

  [[nodiscard]] OpenOptions open_options() const {
    OpenOptions open;
    open.helper = options_.helper;
    return open;
  }

  void keep(ShardSet::Shard shard, const ListedShard& listed) {
    if (classes_.empty()) {
      classes_ = listed.entry != nullptr ? listed.manifest->classes : shard.index.classes;
    }
    facts_.samples = facts_.samples.value_or(0) + shard.index.samples;
    shards_.push_back(std::move(shard));
  }

  /// A file that no manifest of tensors describes. It is opened here and nowhere else: samples and
  /// pictures are read from the same mapping, unless there are too many files.
  void inspect_file(const ListedShard& listed) {
    auto mapped = std::make_shared<const MappedShard>(listed.path);
    const Format format = format_of(*mapped);
    note_format(std::string(name(format)));
    if (survey_is_cut(format, *mapped)) return;
    ShardSet::Shard shard{std::filesystem::absolute(listed.path),
                          scan_mapped(*mapped, listed, open_options()), mapped->state()};
    if (shards_.size() < kForeignFilesRead) shard.mapped = std::move(mapped);
    keep(std::move(shard), listed);
  }

  /// Surveys a file. True if it is an archive that is cut: then the samples before the damage
  /// count, and it is not opened for reading.
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

  /// Throws as detect_format does, when what can be told was noted.
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

  /// Surveys the beginning of what a file holds that gzip or zlib compressed.
  void inspect_compressed(const MappedShard& mapped) {
    const InflatedHead head = inflate_head(mapped.bytes(), kHeadBytes);
    try {
      const Format format = detect_format(head.bytes, mapped.path().stem());
      if (format == Format::kHdf5) return;  // its beginning alone tells nothing
      note_format(std::string(name(format)));
      survey_stream(format, head.bytes, mapped.path());
    } catch (const Error&) {  // the head ends before the file does
    }
    if (head.is_damaged) {
      note_fault(mapped.path(), std::nullopt,
                 fmt::format("its {} stream is broken or ends too early", facts_.compression));
    }
    if (!head.is_whole) {
      facts_.contents_extent =
          fmt::format("the first {} of what was compressed", size_text(head.bytes.size()));
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

  void note_format(const std::string& format) {
    facts_.format = facts_.format.empty() || facts_.format == format ? format : "mixed";
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
    describe_extent();
  }

  void describe_extent() {
    std::string& extent = facts_.contents_extent;
    if (!extent.empty()) return;
    if (facts_.hdf5 && facts_.files > 1) {
      extent = "the first file";
    } else if (facts_.files_read < facts_.files) {
      extent = fmt::format("{} of {} files", facts_.files_read, facts_.files);
    } else if (!facts_.faults.empty()) {
      extent = "what comes before the damage";
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
  InspectProgress no_progress_;
  InspectProgress& progress_;
  Inspection facts_;
  std::vector<ListedShard> listed_;
  std::vector<ShardSet::Shard> shards_;
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
