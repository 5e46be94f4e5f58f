// SPDX-License-Identifier: Apache-2.0
#include "precache/tools/inspect.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>

#include "formats/bytes/inflate.hpp"
#include "formats/bytes/size_text.hpp"
#include "formats/hdf5/helper/helper_client.hpp"
#include "formats/os/bus_fault.hpp"
#include "formats/os/file.hpp"
#include "formats/shard/file_kind.hpp"
#include "formats/shard/scan.hpp"
#include "formats/tar/tar_contents.hpp"
#include "formats/tfrecord/tfrecord_contents.hpp"
#include "precache/formats/error.hpp"
#include "precache/formats/permutation.hpp"
#include "reader/shards/cut_shard.hpp"
#include "reader/shards/open_shards.hpp"
#include "reader/tools/inspect/inspect_samples.hpp"

namespace precache {
namespace {

constexpr std::uint64_t kForeignFilesRead = 16;
constexpr std::size_t kHeadBytes = std::size_t{8} << 20;  // of a compressed file

/// Looks at what one path means, step by step.
class Inspector {
 public:
  Inspector(const std::filesystem::path& path, const InspectOptions& options)
      : options_(options),
        progress_(options.progress != nullptr ? *options.progress : no_progress_) {
    facts_.path = path;
  }

  Inspection run() && {
    listed_ = list_shards(facts_.path, options_.split);
    facts_.files = listed_.size();
    note_splits();
    describe_manifest();
    look_at_files();
    describe_kind();
    open_readable();
    return std::move(facts_);
  }

 private:
  /// Notes what is thrown for damage or an obstacle; failures of the system pass.
  template <typename Call>
  void look(const Call& call) {
    try {
      call();
    } catch (const CorruptData& error) {
      note_fault({error.path(), std::nullopt, error.offset(), error.reason()});
    } catch (const Unsupported& error) {
      note_obstacle(error.what());
    }
  }

  void note_obstacle(std::string obstacle) {
    // Of one file it is clear which is meant.
    const std::string file = "'" + listed_.front().path.string() + "' ";
    if (listed_.size() == 1 && obstacle.starts_with(file)) obstacle.replace(0, file.size(), "it ");
    if (std::ranges::find(facts_.obstacles, obstacle) == facts_.obstacles.end()) {
      facts_.obstacles.push_back(std::move(obstacle));
    }
  }

  void note_fault(Fault fault) {
    const auto is_same = [&](const Fault& known) {
      return known.file == fault.file && known.offset == fault.offset &&
             known.reason == fault.reason;
    };
    // A dissection and the scan after it stumble over the same byte.
    if (std::ranges::none_of(facts_.faults, is_same)) facts_.faults.push_back(std::move(fault));
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
    note_obstacle(
        fmt::format("by their names its shards are of {} splits: {}; the facts are of all together",
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

  void look_at_files() {
    std::vector<bool> is_read(listed_.size(), facts_.has_manifest || options_.all);
    for (const std::uint64_t i : spread(listed_.size(), kForeignFilesRead)) is_read[i] = true;
    for (std::size_t i = 0; i < listed_.size(); ++i) {
      if (is_read[i] && listed_[i].entry == nullptr) ++progress_.files_planned;
    }
    for (std::size_t i = 0; i < listed_.size(); ++i) {
      std::uint64_t bytes = 0;
      if (!find_size(listed_[i], bytes)) continue;
      facts_.bytes += bytes;
      if (!is_read[i]) continue;
      ++facts_.files_read;
      facts_.bytes_read += bytes;
      if (listed_[i].entry != nullptr) {
        note_format(listed_[i].manifest->format);
        look([&] { keep(listed_[i]); });
      } else {
        look([&] { look_into(listed_[i]); });
        ++progress_.files_done;
      }
    }
    if (has_tar_) facts_.tar = tar_.result();
    if (has_tfrecord_) facts_.tfrecord = tfrecord_.result();
  }

  /// False if a shard of a manifest is not there, or of another size.
  bool find_size(const ListedShard& listed, std::uint64_t& bytes) {
    try {
      bytes = File(listed.path, O_RDONLY | O_NONBLOCK).size();
    } catch (const IoError& error) {
      if (!listed.known_bytes() || error.code() != ENOENT) throw;
      note_fault(
          {listed.path, std::nullopt, std::nullopt, "the manifest lists it, but it is not there"});
      return false;
    }
    const auto cut = find_cut(listed, bytes);
    if (cut) note_fault({listed.path, std::nullopt, cut->offset, cut->reason});
    return !cut;
  }

  void keep(const ListedShard& listed) {
    OpenOptions open;
    open.helper = options_.helper;
    shards_.push_back(open_shard(listed, open));
    facts_.readable.push_back(listed.path);
    const auto& index = shards_.back().index;
    if (classes_.empty()) {
      classes_ = listed.entry != nullptr ? listed.manifest->classes : index.classes;
    }
    facts_.samples = facts_.samples.value_or(0) + index.samples;
  }

  /// A file that no manifest describes.
  void look_into(const ListedShard& listed) {
    {
      const MappedShard mapped(listed.path);
      const Format format = format_of(mapped);
      note_format(std::string(name(format)));
      if (format == Format::kTar && take_cut(mapped)) return;
      look([&] { survey(format, mapped); });
      mapped.check();
    }
    keep(listed);
  }

  /// Whether an archive is cut: then what is whole counts, and nothing of it is opened.
  bool take_cut(const MappedShard& mapped) {
    const auto cut = find_cut(mapped.bytes(), mapped.path());
    if (!cut) return false;
    try {
      survey(Format::kTar, mapped);
    } catch (const CorruptData&) {  // where the cut is
    }
    mapped.check();
    facts_.samples = facts_.samples.value_or(0) + cut->samples;
    note_fault({mapped.path(), std::nullopt, cut->offset, cut->reason});
    return true;
  }

  /// Throws as detect_format does, when what can be told was noted.
  Format format_of(const MappedShard& mapped) {
    try {
      return detect_format(mapped.bytes(), mapped.path());
    } catch (const Unsupported&) {
      const FileKind kind = file_kind(mapped.bytes());
      if (kind.group == FileKind::Group::kCompressed) {
        facts_.compression = kind.name;
        look_inside(mapped);
      } else {
        facts_.content = kind.name;
      }
      throw;
    }
  }

  /// What a compressed file begins with, if it is compressed as gzip and zlib do.
  void look_inside(const MappedShard& mapped) {
    if (facts_.compression != "gzip" && facts_.compression != "zlib") return;
    const InflatedHead head = inflate_head(mapped.bytes(), kHeadBytes);
    try {
      const Format format = detect_format(head.bytes, mapped.path().stem());
      if (format == Format::kHdf5) return;  // of which a beginning tells nothing
      note_format(std::string(name(format)));
      has_tar_ = has_tar_ || format == Format::kTar;
      has_tfrecord_ = has_tfrecord_ || format == Format::kTfrecord;
      format == Format::kTar ? tar_.add(head.bytes, mapped.path())
                             : tfrecord_.add(head.bytes, mapped.path());
    } catch (const Error&) {  // the end of the head is none of the file
    }
    if (head.is_damaged) {
      note_fault({mapped.path(), std::nullopt, std::nullopt,
                  fmt::format("its {} stream is broken or ends too early", facts_.compression)});
    }
    if (!head.is_whole) {
      facts_.contents_extent =
          fmt::format("the first {} of what was compressed", size_text(head.bytes.size()));
    }
  }

  void survey(Format format, const MappedShard& mapped) {
    switch (format) {
      case Format::kTar:
        has_tar_ = true;
        return tar_.add(mapped.bytes(), mapped.path());
      case Format::kTfrecord:
        has_tfrecord_ = true;
        return tfrecord_.add(mapped.bytes(), mapped.path());
      case Format::kHdf5:
        if (facts_.hdf5) return;
        facts_.hdf5 = hdf5::survey_in_helper(options_.helper, mapped.path(), mapped.state().bytes);
    }
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

  void open_readable() {
    if (shards_.empty()) {
      facts_.access.reason = !facts_.obstacles.empty() ? facts_.obstacles.front()
                             : !facts_.faults.empty()  ? "it is damaged"
                                                       : "it has no shards";
      return;
    }
    look([&] {
      const ShardSet set(std::move(shards_), std::move(classes_), {});
      facts_.spec = set.spec();
      describe_samples(set, options_, progress_, facts_);
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
