// SPDX-License-Identifier: Apache-2.0
#include "convert/source/tfrecord_images.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "convert/image/decode/image_kind.hpp"
#include "convert/source/numbered_name.hpp"
#include "convert/source/source_path.hpp"
#include "formats/bytes/crc32c.hpp"
#include "formats/bytes/little_endian.hpp"
#include "formats/os/file.hpp"
#include "formats/shard/file_kind.hpp"
#include "formats/tar/webdataset.hpp"
#include "formats/tfrecord/example_fields.hpp"
#include "formats/tfrecord/feature_names.hpp"
#include "formats/tfrecord/label_feature.hpp"
#include "formats/tfrecord/tfrecord_records.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

using tfrecord::ExampleCursor;
using tfrecord::Feature;
using tfrecord::FeatureKind;

bool is_image(std::span<const std::byte> bytes) { return image_kind(bytes) != ImageKind::kOther; }

/// All features of an Example, the last of equal names; none if it is no Example.
std::optional<std::vector<Feature>> features_of(std::span<const std::byte> example) {
  std::vector<Feature> features;
  std::unordered_map<std::string_view, std::size_t> places;
  ExampleCursor cursor(example);
  while (const auto feature = cursor.next()) {
    const auto [place, is_new] = places.emplace(feature->name, features.size());
    if (is_new) {
      features.push_back(*feature);
    } else {
      features[place->second] = *feature;
    }
  }
  if (cursor.is_malformed()) return std::nullopt;
  return features;
}

const Feature* find(const std::vector<Feature>& features, std::string_view name) {
  const auto found = std::ranges::find(features, name, &Feature::name);
  return found == features.end() ? nullptr : &*found;
}

std::optional<std::string> label_text(const Feature& feature) {
  if (!tfrecord::unfit_label(feature).empty()) return std::nullopt;
  if (feature.kind == FeatureKind::kIntegers) return std::to_string(feature.integers[0]);
  return std::string(tar::trimmed(as_text(feature.bytes)));
}

std::string names_of(const std::vector<Feature>& features) {
  constexpr std::size_t kMostNames = 20;
  std::string names;
  for (const Feature& feature : std::span(features).first(std::min(features.size(), kMostNames))) {
    names += (names.empty() ? "" : ", ") + std::string(feature.name);
  }
  return features.size() > kMostNames ? names + ", ..." : names;
}

/// Throws Unsupported for images that no decoder here reads.
void refuse_other_kind(std::span<const std::byte> bytes, const std::string& where,
                       const std::filesystem::path& path) {
  const std::string_view kind = image_file_kind(bytes);
  if (kind.empty() || is_image(bytes)) return;
  throw Unsupported(fmt::format("{} of '{}' holds {} images", where, path.string(), kind),
                    "precache reads JPEG and PNG: convert the images to one of these first.");
}

std::string image_feature(const std::vector<Feature>& features, const std::filesystem::path& path,
                          const std::string& given) {
  if (!given.empty()) {
    const Feature* feature = find(features, given);
    if (feature != nullptr && feature->kind == FeatureKind::kBytes) {
      refuse_other_kind(feature->bytes, fmt::format("'{}'", given), path);
    }
    if (feature != nullptr) return given;
    throw InvalidArgument(
        fmt::format("the records of '{}' have no feature '{}'", path.string(), given),
        fmt::format("They have: {}.", names_of(features)));
  }
  const auto holds_image = [](const Feature* feature) {
    return feature != nullptr && feature->kind == FeatureKind::kBytes && is_image(feature->bytes);
  };
  for (const std::string_view name : tfrecord::kImageNames) {
    if (holds_image(find(features, name))) return std::string(name);
  }
  for (const Feature& feature : features) {
    if (holds_image(&feature)) return std::string(feature.name);
  }
  for (const Feature& feature : features) {
    if (feature.kind != FeatureKind::kBytes) continue;
    refuse_other_kind(feature.bytes, fmt::format("'{}'", feature.name), path);
  }
  throw InvalidArgument(
      fmt::format("the first record of '{}' holds no JPEG or PNG file", path.string()),
      fmt::format("It has: {}. Name the feature with --image-key. {}", names_of(features),
                  kUseConvertHint));
}

std::string first_present(const std::vector<Feature>& features,
                          std::span<const std::string_view> names) {
  const auto found = std::ranges::find_if(
      names, [&](std::string_view name) { return find(features, name) != nullptr; });
  return found == names.end() ? std::string() : std::string(*found);
}

class Scanner {
 public:
  Scanner(std::span<const std::byte> file, const std::filesystem::path& path, std::uint32_t shard,
          const RecordFeatures& features, const Labelling& labelling)
      : file_(file),
        path_(path),
        shard_(shard),
        features_(features),
        wants_labels_(labelling.kind == Labelling::Kind::kSource) {}

  RecordImages run() && {
    tfrecord::RecordCursor records(file_, path_);
    while (const auto record = records.next()) take(*record);
    return std::move(found_);
  }

 private:
  void take(const tfrecord::Record& record) {
    const std::size_t number = found_.records.size();
    std::string key;
    std::optional<std::string> label;
    if (!features_.image.empty()) {
      ExampleCursor cursor(file_.subspan(record.data, record.data_bytes));
      while (const auto feature = cursor.next()) {
        if (feature->name == features_.key && feature->kind == FeatureKind::kBytes) {
          key = as_text(feature->bytes.first(std::min(feature->bytes.size(), kLongestName + 1)));
        } else if (feature->name == features_.label) {
          label = label_text(*feature);
        }
      }
    }
    if (wants_labels_ && (!label || label->empty())) refuse_without_label(number, record);
    if (key.empty() || key.size() > kLongestName) key = numbered_name(path_, number);
    found_.records.add({key, record.end - record.begin, 0, -1, shard_, record.begin});
    if (wants_labels_) found_.labels.add(*label);
  }

  [[noreturn]] void refuse_without_label(std::size_t number, const tfrecord::Record& record) const {
    const auto features = features_of(file_.subspan(record.data, record.data_bytes));
    const Feature* label = features ? find(*features, features_.label) : nullptr;
    const std::string unfit = label == nullptr ? "" : tfrecord::unfit_label(*label);
    throw InvalidArgument(
        features_.label.empty()
            ? fmt::format("the records of '{}' have no label that is known by its name",
                          path_.string())
        : unfit.empty() ? fmt::format("record {} of '{}' has no integer or name in '{}'", number,
                                      path_.string(), features_.label)
                        : fmt::format("{} in record {} of '{}'; a label is one integer or name",
                                      unfit, number, path_.string()),
        fmt::format(
            "{}Name the feature with --label-key, or use --labels none, or --labels FILE.csv.",
            features ? fmt::format("It has: {}. ", names_of(*features)) : ""));
  }

  std::span<const std::byte> file_;
  const std::filesystem::path& path_;
  std::uint32_t shard_;
  const RecordFeatures& features_;
  bool wants_labels_;
  RecordImages found_;
};

}  // namespace

std::optional<RecordFeatures> find_features(std::span<const std::byte> file,
                                            const std::filesystem::path& path,
                                            const Labelling& labelling) {
  tfrecord::RecordCursor records(file, path);
  const auto record = records.next();
  if (!record) return std::nullopt;
  const auto data = file.subspan(record->data, record->data_bytes);
  if (labelling.image_key.empty() && is_image(data)) return RecordFeatures();
  if (labelling.image_key.empty()) refuse_other_kind(data, "the first record", path);
  const auto features = features_of(data);
  if (!features) {
    throw InvalidArgument(
        fmt::format("the first record of '{}' is no tf.train.Example", path.string()));
  }
  RecordFeatures names;
  names.image = image_feature(*features, path, labelling.image_key);
  names.label = labelling.label_key;
  if (names.label.empty()) names.label = first_present(*features, tfrecord::kLabelNames);
  if (names.label.empty()) names.label = first_present(*features, tfrecord::kLabelTexts);
  names.key = first_present(*features, tfrecord::kKeyNames);
  return names;
}

RecordImages scan_records(std::span<const std::byte> file, const std::filesystem::path& path,
                          std::uint32_t shard, const RecordFeatures& features,
                          const Labelling& labelling) {
  return Scanner(file, path, shard, features, labelling).run();
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
  if (little_endian(record.last(tfrecord::kFooterBytes)) != crc32c::masked(crc32c::value(data))) {
    throw CorruptData(path, offset + tfrecord::kLengthBytes, "the CRC of a record's data is wrong");
  }
  if (image_key.empty()) return data;
  std::optional<std::span<const std::byte>> image;
  ExampleCursor cursor(data);
  while (const auto feature = cursor.next()) {
    if (feature->name != image_key) continue;
    image.reset();
    if (feature->kind == FeatureKind::kBytes && feature->count == 1) image = feature->bytes;
  }
  return image;
}

}  // namespace precache
