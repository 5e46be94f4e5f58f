// SPDX-License-Identifier: Apache-2.0
#include "formats/tar/tar_scan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include "formats/os/file.hpp"
#include "formats/shard/index_builder.hpp"
#include "formats/tar/npy_header.hpp"
#include "formats/tar/tar_entries.hpp"
#include "formats/tar/webdataset.hpp"
#include "precache/formats/error.hpp"

namespace precache::tar {
namespace {

struct ImageKind {
  std::string_view extension;
  std::string_view name;
};
constexpr std::array<ImageKind, 17> kImageKinds{{{"jpg", "JPEG"},
                                                 {"jpeg", "JPEG"},
                                                 {"jfif", "JPEG"},
                                                 {"png", "PNG"},
                                                 {"webp", "WebP"},
                                                 {"ppm", "PPM"},
                                                 {"pgm", "PGM"},
                                                 {"pbm", "PBM"},
                                                 {"pnm", "PNM"},
                                                 {"bmp", "BMP"},
                                                 {"gif", "GIF"},
                                                 {"tif", "TIFF"},
                                                 {"tiff", "TIFF"},
                                                 {"jp2", "JPEG 2000"},
                                                 {"avif", "AVIF"},
                                                 {"heic", "HEIC"},
                                                 {"jxl", "JPEG XL"}}};

std::string_view last_part(std::string_view extension) {
  return extension.substr(extension.rfind('.') + 1);
}

/// Empty if it is no image's.
std::string_view image_kind(std::string_view extension) {
  const auto kind = std::ranges::find(kImageKinds, last_part(extension), &ImageKind::extension);
  return kind == kImageKinds.end() ? std::string_view() : kind->name;
}

std::optional<std::int64_t> decimal(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// One file of a sample.
struct Field {
  std::string extension;  // in lower case
  std::uint64_t begin = 0;
  std::uint64_t data = 0;
  std::uint64_t size = 0;
  std::uint64_t end = 0;
  std::uint64_t name_header = 0;
  NameSource name_source = NameSource::kOther;
  bool is_plain_npy = false;  // KEY.npy to the letter
};

/// The fields of one sample that matter; whatever else it has costs nothing.
struct Group {
  std::string key;  // empty: there is no group
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::optional<Field> npy, image, cls, json, txt, other;
  std::optional<Field> named_image, named_label;  // what keys name
  std::vector<Field> numbered;  // images called KEY.1.jpg and the like, if it has nothing else
  bool only_numbered = true;
};

class Scanner {
 public:
  Scanner(std::span<const std::byte> file, const std::filesystem::path& path,
          const std::optional<TensorSpec>& given, const SampleKeys& keys)
      : file_(file),
        path_(path),
        image_key_(lower(keys.image)),
        label_key_(parse_label_key(keys.label)),
        without_labels_(keys.without_labels),
        builder_(Format::kTar, file.size(), path, given) {}

  ShardIndex run() && {
    EntryCursor entries(file_, path_);
    while (const auto entry = entries.next()) {
      if (entry->type == EntryType::kFile || entry->type == EntryType::kSparse) take(*entry);
    }
    end_sample();
    return std::move(builder_).finish();
  }

 private:
  void take(const Entry& entry) {
    const SplitName name = split_name(entry.name);
    if (name.key.empty()) return;
    if (entry.type == EntryType::kSparse) {
      throw Unsupported(
          fmt::format("'{}' holds '{}' as a sparse file, whose bytes do not lie in one piece",
                      path_.string(), entry.name));
    }
    Field field{lower(name.extension),
                entry.begin,
                entry.data,
                entry.size,
                entry.end,
                entry.name_header,
                entry.name_source,
                name.extension == "npy"};
    std::optional<Field>& slot = slot_for(field.extension);
    const bool is_again = slot && slot->extension == field.extension;
    if (group_.key != name.key || is_again) {
      end_sample();
      group_.key = name.key;
      group_.begin = entry.begin;
    }
    group_.end = entry.end;
    const bool is_numbered =
        &slot == &group_.image && last_part(field.extension) != field.extension;
    group_.only_numbered = group_.only_numbered && is_numbered;
    if (group_.only_numbered) {
      group_.numbered.push_back(field);
    } else {
      group_.numbered.clear();
    }
    if (!slot) slot = std::move(field);
  }

  /// Where the group keeps the first field of such an extension.
  std::optional<Field>& slot_for(std::string_view extension) {
    if (!image_key_.empty() && extension == image_key_) return group_.named_image;
    if (!label_key_.extension.empty() && extension == label_key_.extension) {
      return group_.named_label;
    }
    if (extension == "cls") return group_.cls;
    if (extension == "json") return group_.json;
    if (extension == "txt") return group_.txt;
    if (last_part(extension) == "npy") return group_.npy;
    return image_kind(extension).empty() ? group_.other : group_.image;
  }

  void end_sample() {
    if (group_.key.empty()) return;
    if (group_.numbered.size() > 1) {
      for (const Field& field : group_.numbered) {
        const std::string_view extension = field.extension;
        const std::string key =
            fmt::format("{}.{}", group_.key, extension.substr(0, extension.rfind('.')));
        add(field, key, field.begin, field.end);
      }
    } else {
      add(payload(), group_.key, group_.begin, group_.end);
    }
    group_ = {};
  }

  [[nodiscard]] const Field& payload() const {
    if (!image_key_.empty() && !group_.named_image) {
      throw InvalidArgument(fmt::format("sample '{}' of '{}' has no file that ends in '.{}'",
                                        group_.key, path_.string(), image_key_));
    }
    for (const auto* field : {&group_.named_image, &group_.npy, &group_.image, &group_.other,
                              &group_.txt, &group_.cls, &group_.json}) {
      if (*field) return **field;
    }
    return *group_.named_label;
  }

  void add(const Field& field, std::string_view key, std::uint64_t begin, std::uint64_t end) {
    FoundSample sample{.record = begin,
                       .record_end = end,
                       .payload = field.data,
                       .payload_bytes = field.size,
                       .key = key};
    if (last_part(field.extension) == "npy") {
      const npy::Header header =
          npy::read_header(file_.subspan(field.data, field.size), path_, field.data);
      sample.payload += header.header_bytes;
      sample.payload_bytes = header.array_bytes;
      SpecGuess guess = npy::guess_spec(header);
      sample.spec = guess.spec;
      sample.obstacle = std::move(guess.obstacle);
      sample.shape_unknown = header.descr == "<u2" && !header.fortran_order;  // our bfloat16, maybe
    } else {
      const std::string_view kind = image_kind(field.extension);
      sample.obstacle = kind.empty() ? fmt::format("its samples are '.{}' files", field.extension)
                                     : fmt::format("its samples are {} files", kind);
    }
    find_label(sample);
    sample.key_spot = key_spot(field);
    builder_.add(sample);
  }

  [[nodiscard]] std::string_view text_of(const Field& field) const {
    return as_text(file_.subspan(field.data, field.size));
  }

  [[nodiscard]] FoundLabel label_in(const Field& field) const {
    return field.extension == "json" ? label_of_json(text_of(field), label_key_.json_field)
                                     : label_of_text(text_of(field));
  }

  /// By the best of the files that may hold it, as a build does.
  [[nodiscard]] FoundLabel found_label() const {
    if (!label_key_.extension.empty()) return named_label();
    FoundLabel found;
    for (const auto* field : {&group_.cls, &group_.json}) {
      if (!found.label.empty() || !*field) continue;
      FoundLabel next = label_in(**field);
      if (found.unfit.empty() && !next.unfit.empty()) {
        found.unfit = fmt::format("{} of '{}.{}'", next.unfit, group_.key, (*field)->extension);
      }
      found.label = std::move(next.label);
    }
    return found;
  }

  [[nodiscard]] FoundLabel named_label() const {
    FoundLabel found = group_.named_label ? label_in(*group_.named_label) : FoundLabel{};
    if (!found.label.empty()) return found;
    throw InvalidArgument(fmt::format(
        "sample '{}' of '{}' has no label in a '.{}' file{}", group_.key, path_.string(),
        label_key_.extension, found.unfit.empty() ? "" : fmt::format(", but {}", found.unfit)));
  }

  void find_label(FoundSample& sample) {
    using Kind = ValueLocation::Kind;
    label_name_.clear();
    if (without_labels_) return;
    FoundLabel found = found_label();
    label_name_ = std::move(found.label);
    // It may be a caption. All shards together tell, so that it is not made a number here.
    if (label_name_.empty() && group_.txt) {
      FoundLabel text = label_of_text(text_of(*group_.txt));
      label_name_ = std::move(text.label);
      if (!label_name_.empty() || !text.unfit.empty()) builder_.note_text(text.unfit.empty());
      sample.label_name = label_name_;
    }
    if (label_name_.empty() && !found.unfit.empty()) builder_.note_unfit_labels(found.unfit);
    if (!sample.label_name.empty()) return;
    if (const auto number = decimal(label_name_)) {
      sample.label = *number;
      sample.label_spot.kind = Kind::kElsewhere;
      // A column's number ends at a zero byte, so the filling has to be one, and there has to be
      // one.
      const bool is_column = group_.cls && decimal(text_of(*group_.cls)) &&
                             group_.cls->data + group_.cls->size < group_.cls->end &&
                             file_[group_.cls->data + group_.cls->size] == std::byte{0};
      if (is_column) sample.label_spot = {Kind::kColumn, group_.cls->data, "decimal"};
    } else {
      sample.label_name = label_name_;
    }
  }

  static ValueLocation key_spot(const Field& field) {
    using Kind = ValueLocation::Kind;
    if (!field.is_plain_npy || field.name_source == NameSource::kOther) {
      return {Kind::kElsewhere, 0, {}};
    }
    return {Kind::kColumn, field.name_header,
            field.name_source == NameSource::kUstar ? "ustar" : "pax"};
  }

  std::span<const std::byte> file_;
  const std::filesystem::path& path_;
  std::string image_key_;
  LabelKey label_key_;
  bool without_labels_;
  IndexBuilder builder_;
  Group group_;
  std::string label_name_;  // of the sample that is added
};

}  // namespace

ShardIndex scan(std::span<const std::byte> file, const std::filesystem::path& path,
                const std::optional<TensorSpec>& given, const SampleKeys& keys) {
  return Scanner(file, path, given, keys).run();
}

}  // namespace precache::tar
