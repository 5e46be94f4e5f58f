// SPDX-License-Identifier: Apache-2.0
#include "formats/tfrecord/tfrecord_contents.hpp"

#include <algorithm>

#include "formats/shard/file_kind.hpp"
#include "formats/tfrecord/tfrecord_records.hpp"

namespace precache::tfrecord {
namespace {

// Far more than records of samples have; a hostile one could make each name another.
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

/// How many values a list of numbers has, packed or not.
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
  return feature.kind == FeatureKind::kBytes ? feature.count : count_numbers(feature);
}

}  // namespace

void ContentsSurvey::add(std::span<const std::byte> file, const std::filesystem::path& path) {
  RecordCursor records(file, path);
  while (const auto record = records.next()) {
    ++counts_.records;
    counts_.record_bytes.add(record->data_bytes);
    const auto data = file.subspan(record->data, record->data_bytes);
    const bool is_example = take(data);
    if (messages_ != nullptr) messages_->take(data, is_example);
  }
}

bool ContentsSurvey::take(std::span<const std::byte> record) {
  notes_.clear();
  bool is_sequence = false;
  WireCursor parts(record);
  while (const auto part = parts.next()) {
    if (!part->is_delimited || part->number > 2) return false;
    if (!(part->number == 1 ? read_context(part->bytes) : read_sequences(part->bytes))) {
      return false;
    }
    is_sequence = is_sequence || part->number == 2;
  }
  if (parts.is_malformed()) return false;
  ++(is_sequence ? counts_.sequence_examples : counts_.examples);
  for (const Note& note : notes_) count(note);
  return true;
}

bool ContentsSurvey::read_context(std::span<const std::byte> features) {
  WireCursor entries(features);
  while (const auto entry = entries.next()) {
    const auto named = read_entry(*entry);
    const auto feature = named ? read_feature(*named) : std::nullopt;
    if (!feature) return false;
    notes_.push_back({*feature, count_values(*feature), false});
  }
  return !entries.is_malformed();
}

bool ContentsSurvey::read_sequences(std::span<const std::byte> lists) {
  WireCursor entries(lists);
  while (const auto entry = entries.next()) {
    const auto named = read_entry(*entry);
    if (!named) return false;
    Note note{.feature = {.name = named->name}, .is_sequence = true};
    WireCursor steps(named->value);
    while (const auto step = steps.next()) {
      if (step->number != 1 || !step->is_delimited) return false;
      const auto feature = read_feature({named->name, step->bytes});
      if (!feature) return false;
      if (note.values++ == 0) note.feature = *feature;
    }
    if (steps.is_malformed()) return false;
    notes_.push_back(note);
  }
  return !entries.is_malformed();
}

void ContentsSurvey::count(const Note& note) {
  const std::string name(note.feature.name.substr(0, kLongestName));
  const auto key = std::pair(name, note.is_sequence);
  if (features_.size() >= kMostFeatures && !features_.contains(key)) {
    counts_.has_more = true;
    return;
  }
  TfrecordContents::Feature& feature = features_[key];
  const char* const kind = kind_text(note.feature.kind);
  if (feature.records++ == 0) {
    feature.name = name;
    feature.kind = kind;
    feature.is_sequence = note.is_sequence;
  } else if (feature.kind == "empty") {
    feature.kind = kind;
  } else if (feature.kind != kind && note.feature.kind != FeatureKind::kNone) {
    feature.kind = "mixed";
  }
  feature.values.add(note.values);
  if (note.feature.kind != FeatureKind::kBytes || note.feature.count == 0) return;
  feature.bytes.add(note.feature.bytes.size());
  if (feature.content.empty()) feature.content = image_file_kind(note.feature.bytes);
}

TfrecordContents ContentsSurvey::result() const {
  TfrecordContents contents = counts_;
  for (const auto& [key, feature] : features_) contents.features.push_back(feature);
  if (messages_ != nullptr) contents.messages = messages_->result();
  return contents;
}

}  // namespace precache::tfrecord
