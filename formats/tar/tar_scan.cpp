// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "formats/bytes/text.hpp"
#include "formats/os/file.hpp"
#include "formats/shard/file_names.hpp"
#include "formats/shard/index_builder.hpp"
#include "formats/shard/scan.hpp"
#include "formats/tar/npy_header.hpp"
#include "formats/tar/tar_finder.hpp"
#include "precache/formats/error.hpp"

namespace precache::tar {
namespace {

using Kind = ValueLocation::Kind;

/// Makes an index from the groups of an archive.
class Indexer {
 public:
  Indexer(std::span<const std::byte> archive, const std::filesystem::path& path,
          const std::optional<TensorSpec>& given, const SampleKeys& keys)
      : archive_(archive),
        path_(path),
        image_key_(lower(keys.image)),
        label_key_(parse_label_key(keys.label)),
        without_labels_(keys.without_labels),
        builder_(Format::kTar, archive.size(), path, given) {}

  ShardIndex run() && {
    SampleFinder(archive_, path_).run([&](const FoundGroup& group) { take(group); });
    return std::move(builder_).finish();
  }

 private:
  void take(const FoundGroup& group) {
    if (group.key.empty()) return;
    GroupLabel label;
    if (!without_labels_) label = label_of(group);
    if (image_key_.empty() && group.has_only_numbered_images()) {
      for (const FoundFile& file : group.files) {
        const std::string_view name = file.name;
        add(file, name.substr(0, name.rfind('.')), file.entry.begin, file.entry.end, label);
      }
    } else {
      if (builder_.samples() == 0) note_left_out(group, label);
      add(payload_of(group), group.key, group.files.front().entry.begin,
          group.files.back().entry.end, label, size_spot_of(group));
    }
  }

  void note_left_out(const FoundGroup& group, const GroupLabel& label) {
    const FoundFile& payload = payload_of(group);
    for (const FoundFile& file : group.files) {
      if (&file == &payload || &file == label.file || file.extension == "cls") continue;
      std::string_view name = file.written_extension();
      if (name.ends_with(".npy")) name.remove_suffix(4);  // a named column of precache
      builder_.note_left_out(name);
    }
  }

  /// The place of the original height and width, which only precache files have.
  [[nodiscard]] ValueLocation size_spot_of(const FoundGroup& group) const {
    const auto file = std::ranges::find(group.files, "size.npy", &FoundFile::extension);
    if (file == group.files.end() || file->entry.type != EntryType::kFile || !file->entry.data_crc)
      return {};
    const npy::Header header = npy::read_header(
        archive_.subspan(file->entry.data, file->entry.size), path_, file->entry.data);
    const bool is_pair = header.descr == "<i4" && header.shape == std::vector<std::uint64_t>{2};
    if (!is_pair) return {};
    return {Kind::kColumn, file->entry.data + header.header_bytes, name(ValueType::kInt32)};
  }

  /// Lower is better: arrays, images that precache decodes, other images, other files, and files
  /// that may be labels.
  [[nodiscard]] int rank_of(const FoundFile& file) const {
    if (file.extension == label_key_.extension) return 7;
    if (file.extension == "json") return 6;
    if (file.extension == "cls") return 5;
    if (file.extension == "txt") return 4;
    if (file.type() == "npy") return 0;
    const ImageEnding* const image = find_image_ending(file.type());
    return image == nullptr ? 3 : image->is_decoded ? 1 : 2;
  }

  [[nodiscard]] const FoundFile& payload_of(const FoundGroup& group) const {
    if (image_key_.empty()) {
      const FoundFile* best = &group.files.front();
      int best_rank = rank_of(*best);
      for (const FoundFile& file : group.files.subspan(1)) {
        const int rank = rank_of(file);
        if (rank < best_rank) best = &file;
        best_rank = std::min(best_rank, rank);
      }
      return *best;
    }
    const auto named = std::ranges::find(group.files, image_key_, &FoundFile::extension);
    if (named != group.files.end()) return *named;
    throw InvalidArgument(fmt::format("sample '{}' of '{}' has no file that ends in '.{}'",
                                      group.key, path_.string(), image_key_));
  }

  [[nodiscard]] GroupLabel label_of(const FoundGroup& group) {
    GroupLabel label = find_label(group, archive_, label_key_);
    if (label.text.empty() && !label_key_.extension.empty()) {
      throw InvalidArgument(fmt::format("sample '{}' of '{}' has no label in a '.{}' file{}",
                                        group.key, path_.string(), label_key_.extension,
                                        label.unfit.empty() ? "" : ", but " + label.unfit));
    }
    // Texts may be captions; the texts of all shards together decide that.
    if (label.rank == kTextRank) builder_.note_text(true);
    if (label.rank == 0 && label.has_long_text) builder_.note_text(false);
    if (label.rank == 0 && !label.unfit.empty() && label.unfit_file->extension != "txt") {
      builder_.note_unfit_labels(
          fmt::format("{} of '{}.{}'", label.unfit, group.key, label.unfit_file->extension));
    }
    return label;
  }

  void add(const FoundFile& file, std::string_view key, std::uint64_t begin, std::uint64_t end,
           const GroupLabel& label, const ValueLocation& size_spot = {}) {
    refuse_sparse(file, path_);
    FoundSample sample{.record = begin,
                       .record_end = end,
                       .payload = file.entry.data,
                       .payload_bytes = file.entry.size,
                       .key = key};
    if (file.type() == "npy") {
      const npy::Header header = npy::read_header(
          archive_.subspan(file.entry.data, file.entry.size), path_, file.entry.data);
      sample.payload += header.header_bytes;
      sample.payload_bytes = header.array_bytes;
      SpecGuess guess = npy::guess_spec(header);
      sample.spec = guess.spec;
      sample.unsupported_reason = std::move(guess.unsupported_reason);
      // It may be an array of bfloat16, for which NumPy has no name.
      sample.shape_unknown = header.descr == "<u2" && !header.fortran_order;
    } else {
      const ImageEnding* const image = find_image_ending(file.type());
      sample.unsupported_reason = image == nullptr
                                      ? fmt::format("its samples are '.{}' files", file.extension)
                                      : fmt::format("its samples are {} files", image->kind);
    }
    set_label(label, sample);
    sample.size_spot = size_spot;
    const bool has_key_column = file.extension == "npy" && file.written_extension() == "npy" &&
                                file.entry.name_source != NameSource::kOther;
    sample.key_spot.kind = Kind::kElsewhere;
    if (has_key_column) {
      const bool is_ustar = file.entry.name_source == NameSource::kUstar;
      sample.key_spot = {Kind::kColumn, file.entry.name_header, is_ustar ? "ustar" : "pax"};
    }
    builder_.add(sample);
  }

  void set_label(const GroupLabel& label, FoundSample& sample) const {
    const auto number = parse_number<std::int64_t>(label.text);
    if (!number || label.rank == kTextRank) {
      sample.label_name = label.text;
      return;
    }
    sample.label = *number;
    sample.label_spot.kind = Kind::kElsewhere;
    const Entry& entry = label.file->entry;
    const std::uint64_t end = entry.data + entry.size;
    // A number in a column ends with a zero byte, so a zero byte must follow it in the block.
    const bool is_column =
        parse_number<std::int64_t>(as_text(archive_.subspan(entry.data, entry.size))) &&
        entry.type == EntryType::kFile && end < entry.end && archive_[end] == std::byte{0};
    if (is_column) sample.label_spot = {Kind::kColumn, entry.data, "decimal"};
  }

  std::span<const std::byte> archive_;
  const std::filesystem::path& path_;
  std::string image_key_;
  LabelKey label_key_;
  bool without_labels_;
  IndexBuilder builder_;
};

}  // namespace

ShardIndex scan(std::span<const std::byte> file, const std::filesystem::path& path,
                const std::optional<TensorSpec>& given, const SampleKeys& keys) {
  return Indexer(file, path, given, keys).run();
}

}  // namespace precache::tar
