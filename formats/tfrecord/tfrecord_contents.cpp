// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "formats/shard/contents_survey.hpp"
#include "formats/shard/file_kind.hpp"
#include "formats/tfrecord/tfrecord_records.hpp"

namespace precache::tfrecord {
namespace {

// Far more than records of samples have. A hostile file could have a new name in each record.
constexpr std::size_t kMostFeatures = 1000;
constexpr std::size_t kLongestName = 256;
constexpr std::size_t kFloatBytes = 4;

const char* kind_text(FeatureKind kind) {
  switch (kind) {
    case FeatureKind::kBytes:
      return "bytes";
    case FeatureKind::kFloats:
      return "float";
    case FeatureKind::kIntegers:
      return "int64";
    case FeatureKind::kNone:
      break;
  }
  return "empty";
}

/// The number of values in a list of numbers, packed or not.
std::uint64_t count_numbers(const Feature& feature) {
  std::uint64_t count = 0;
  WireCursor values(feature.list);
  while (const auto value = values.next()) {
    if (!value->is_delimited) {
      ++count;
    } else if (feature.kind == FeatureKind::kFloats) {
      count += value->bytes.size() / kFloatBytes;
    } else {
      count += static_cast<std::uint64_t>(std::ranges::count_if(
          value->bytes, [](std::byte byte) { return (byte & std::byte{0x80}) == std::byte{0}; }));
    }
  }
  return count;
}

std::uint64_t count_values(const Feature& feature) {
  if (feature.is_sequence) return feature.steps;
  return feature.kind == FeatureKind::kBytes ? feature.count : count_numbers(feature);
}

}  // namespace

void ContentsSurvey::add(std::span<const std::byte> file, const std::filesystem::path& path) {
  RecordCursor records(file, path);
  std::vector<Feature> features;
  while (const auto record = records.next()) {
    ++counts_.records;
    counts_.record_bytes.add(record->data_bytes);
    const auto data = file.subspan(record->data, record->data_bytes);
    const auto kind = read_features(data, features);
    if (kind == MessageKind::kExample) ++counts_.examples;
    if (kind == MessageKind::kSequenceExample) ++counts_.sequence_examples;
    for (const Feature& feature : features) count(feature);
    if (messages_ != nullptr) messages_->take(data, kind != MessageKind::kOther);
  }
}

void ContentsSurvey::count(const Feature& found) {
  const std::string name(found.name.substr(0, kLongestName));
  const auto key = std::pair(name, found.is_sequence);
  if (features_.size() >= kMostFeatures && !features_.contains(key)) {
    counts_.has_more = true;
    return;
  }
  TfrecordContents::Feature& feature = features_[key];
  const char* const kind = kind_text(found.kind);
  if (feature.records++ == 0) {
    feature.name = name;
    feature.kind = kind;
    feature.is_sequence = found.is_sequence;
  } else if (feature.kind == "empty") {
    feature.kind = kind;
  } else if (feature.kind != kind && found.kind != FeatureKind::kNone) {
    feature.kind = "mixed";
  }
  feature.values.add(count_values(found));
  if (found.kind != FeatureKind::kBytes || found.count == 0) return;
  feature.bytes.add(found.bytes.size());
  if (feature.content.empty()) feature.content = image_file_kind(found.bytes);
}

TfrecordContents ContentsSurvey::result() const {
  TfrecordContents contents = counts_;
  for (const auto& [key, feature] : features_) contents.features.push_back(feature);
  if (messages_ != nullptr) contents.messages = messages_->result();
  return contents;
}

}  // namespace precache::tfrecord
