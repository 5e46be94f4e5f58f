// SPDX-License-Identifier: Apache-2.0
#include "convert/source/tfrecord_images.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "convert/source/source_path.hpp"
#include "formats/bytes/text.hpp"
#include "formats/os/file.hpp"
#include "formats/shard/file_kind.hpp"
#include "formats/shard/limits.hpp"
#include "formats/tfrecord/tfrecord_finder.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

using tfrecord::Feature;
using tfrecord::FeatureKind;
using tfrecord::FoundRecord;

std::string names_of(const std::vector<Feature>& features) {
  constexpr std::size_t kMostNames = 20;
  std::string names;
  for (const Feature& feature : std::span(features).first(std::min(features.size(), kMostNames))) {
    names += (names.empty() ? "" : ", ") + std::string(feature.name);
  }
  return features.size() > kMostNames ? names + ", ..." : names;
}

std::string label_text(const Feature& feature) {
  if (!tfrecord::unfit_label(feature).empty()) return {};
  if (feature.kind == FeatureKind::kIntegers) return std::to_string(feature.integers[0]);
  return std::string(trimmed(as_text(feature.bytes)));
}

/// Lists the records of one file.
class Lister {
 public:
  Lister(std::span<const std::byte> file, const std::filesystem::path& path, std::uint32_t shard,
         const Labelling& labelling)
      : path_(path),
        shard_(shard),
        keys_{labelling.image_key, labelling.label_key, labelling.kind != Labelling::Kind::kSource},
        finder_(file, path, keys_) {}

  RecordImages run() && {
    while (const FoundRecord* const found = finder_.next()) {
      if (found_.records.size() == 0) check_image(*found);
      take(*found);
    }
    return std::move(found_);
  }

 private:
  /// The first record stands for all.
  void check_image(const FoundRecord& first) {
    const bool is_example = first.kind == tfrecord::MessageKind::kExample;
    if (is_example && !first.has_image && !keys_.image.empty()) {
      throw InvalidArgument(
          fmt::format("the records of '{}' have no feature '{}'", path_.string(), keys_.image),
          fmt::format("Their features are: {}.", names_of(finder_.features())));
    }
    if (!is_example && !first.has_image) {
      throw InvalidArgument(
          fmt::format("the first record of '{}' is not a tf.train.Example", path_.string()));
    }
    if (is_example) found_.image_key = finder_.image_name();
    refuse_undecoded(
        first.image_kind,
        fmt::format("{} of '{}'", is_example ? "'" + found_.image_key + "'" : "the first record",
                    path_.string()));
    // An image whose feature was named is judged when it is read.
    if (!first.image_kind.empty() || !keys_.image.empty()) return;
    throw InvalidArgument(
        fmt::format("the first record of '{}' holds no JPEG or PNG file", path_.string()),
        fmt::format("Its features are: {}. Name the image with `image_key`. {}",
                    names_of(finder_.features()), kUseConvertHint));
  }

  void take(const FoundRecord& found) {
    const std::size_t number = found_.records.size();
    if (!keys_.without_labels) {
      const std::string label = found.label == nullptr ? "" : label_text(*found.label);
      if (label.empty()) refuse_without_label(number, found.label);
      found_.labels.add(label);
    }
    std::string key;
    if (found.key != nullptr && found.key->bytes.size() <= kLongestKey) {
      key = as_text(found.key->bytes);
    }
    if (key.empty()) key = numbered_name(path_, number);
    const auto& [begin, data, data_bytes, end] = found.record;
    found_.records.add({key, end - begin, 0, -1, shard_, begin});
  }

  [[noreturn]] void refuse_without_label(std::size_t number, const Feature* label) const {
    const std::string unfit = label == nullptr ? "" : tfrecord::unfit_label(*label);
    const std::string record = fmt::format("record {} of '{}'", number, path_.string());
    const std::string names = names_of(finder_.features());
    throw InvalidArgument(
        !unfit.empty() ? fmt::format("{} in {}; a label must be one integer or name", unfit, record)
        : label != nullptr || !keys_.label.empty()
            ? fmt::format("{} has no integer or name in '{}'", record,
                          label == nullptr ? keys_.label : label->name)
        : number != 0
            ? record + " has no feature with a usual name for labels"
            : fmt::format("the records of '{}' have no feature with a usual name for labels",
                          path_.string()),
        fmt::format(
            "{}Name the feature with `label_key`, or set `labels` to none or to a CSV file.",
            names.empty() ? "" : fmt::format("The features are: {}. ", names)));
  }

  const std::filesystem::path& path_;
  std::uint32_t shard_;
  SampleKeys keys_;
  tfrecord::SampleFinder finder_;
  RecordImages found_;
};

}  // namespace

void refuse_undecoded(std::string_view kind, const std::string& where) {
  if (kind.empty() || is_decoded(kind)) return;
  throw Unsupported(fmt::format("{} contains {} images", where, kind),
                    "precache reads JPEG and PNG; convert the images first.");
}

RecordImages scan_records(std::span<const std::byte> file, const std::filesystem::path& path,
                          std::uint32_t shard, const Labelling& labelling) {
  return Lister(file, path, shard, labelling).run();
}

std::optional<std::span<const std::byte>> image_of_record(std::span<const std::byte> record,
                                                          const std::string& image_key,
                                                          const std::filesystem::path& path,
                                                          std::uint64_t offset) {
  if (!tfrecord::has_length(record)) {
    throw CorruptData(path, offset, "the CRC of a record's length is wrong");
  }
  const auto data = record.subspan(tfrecord::kLengthBytes,
                                   record.size() - tfrecord::kLengthBytes - tfrecord::kFooterBytes);
  if (!tfrecord::has_right_crc({0, tfrecord::kLengthBytes, data.size(), record.size()}, record)) {
    throw CorruptData(path, offset + tfrecord::kLengthBytes, "the CRC of a record's data is wrong");
  }
  if (image_key.empty()) return data;
  std::optional<std::span<const std::byte>> image;
  std::vector<Feature> features;
  static_cast<void>(read_features(data, features));
  for (const Feature& feature : features) {
    if (feature.name != image_key) continue;
    image.reset();
    if (feature.kind == FeatureKind::kBytes && feature.count == 1) image = feature.bytes;
  }
  return image;
}

}  // namespace precache
