// SPDX-License-Identifier: Apache-2.0
#include "formats/tfrecord/example_fields.hpp"

#include "formats/bytes/varint.hpp"
#include "formats/os/file.hpp"

namespace precache::tfrecord {
namespace {

constexpr std::size_t kDeepestGroup = 100;  // as deep as protobuf's parsers go

/// Sets the first value and the number of values. Returns whether the list is well-formed.
bool read_bytes(std::span<const std::byte> list, Feature& feature) {
  WireCursor values(list);
  while (const auto value = values.next()) {
    if (value->number != 1 || !value->is_delimited) return false;
    if (feature.count++ == 0) {
      feature.bytes = value->bytes;
      feature.encoded = value->encoded;
    }
  }
  return !values.is_malformed();
}

void keep(std::uint64_t value, const std::byte* encoded, Feature& feature) {
  if (feature.count == 0) feature.encoded = encoded;
  if (feature.count < Feature::kMostIntegers) {
    feature.integers[feature.count] = static_cast<std::int64_t>(value);
  }
  ++feature.count;
}

bool read_packed(std::span<const std::byte> packed, Feature& feature) {
  while (!packed.empty() && feature.count <= Feature::kMostIntegers) {
    const auto varint = read_varint(packed);
    if (!varint) return false;
    keep(varint->value, packed.data(), feature);
    packed = packed.subspan(varint->bytes);
  }
  return true;
}

bool read_integers(std::span<const std::byte> list, Feature& feature) {
  WireCursor values(list);
  while (feature.count <= Feature::kMostIntegers) {
    const auto value = values.next();
    if (!value) return !values.is_malformed();
    if (value->number != 1) return false;
    if (value->is_varint) {
      keep(value->varint, value->encoded, feature);
    } else if (!value->is_delimited || !read_packed(value->bytes, feature)) {
      return false;
    }
  }
  return true;
}

/// An entry of a map from names to messages.
struct MapEntry {
  std::string_view name;
  std::span<const std::byte> value;
};

/// None if the field is not such an entry.
std::optional<MapEntry> read_entry(const WireField& field) {
  if (field.number != 1 || !field.is_delimited) return std::nullopt;
  MapEntry entry;
  WireCursor parts(field.bytes);
  while (const auto part = parts.next()) {
    if (!part->is_delimited) return std::nullopt;
    if (part->number == 1) {
      entry.name = as_text(part->bytes);
    } else if (part->number == 2) {
      entry.value = part->bytes;
    } else {
      return std::nullopt;
    }
  }
  return parts.is_malformed() ? std::nullopt : std::optional(entry);
}

/// None if the message is not a tf.train.Feature.
std::optional<Feature> read_feature(const MapEntry& entry) {
  Feature feature{.name = entry.name};
  WireCursor lists(entry.value);
  while (const auto list = lists.next()) {
    if (!list->is_delimited) return std::nullopt;
    feature = {.name = entry.name, .list = list->bytes};  // the last kind counts
    if (list->number == 1) {
      feature.kind = FeatureKind::kBytes;
      if (!read_bytes(list->bytes, feature)) return std::nullopt;
    } else if (list->number == 2) {
      feature.kind = FeatureKind::kFloats;
    } else if (list->number == 3) {
      feature.kind = FeatureKind::kIntegers;
      if (!read_integers(list->bytes, feature)) return std::nullopt;
    } else {
      return std::nullopt;
    }
  }
  return lists.is_malformed() ? std::nullopt : std::optional(feature);
}

/// The map of an Example, or the context of a SequenceExample.
bool read_map(std::span<const std::byte> map, std::vector<Feature>& features) {
  WireCursor entries(map);
  while (const auto entry = entries.next()) {
    const auto named = read_entry(*entry);
    const auto feature = named ? read_feature(*named) : std::nullopt;
    if (!feature) return false;
    features.push_back(*feature);
  }
  return !entries.is_malformed();
}

bool read_sequences(std::span<const std::byte> map, std::vector<Feature>& features) {
  WireCursor entries(map);
  while (const auto entry = entries.next()) {
    const auto named = read_entry(*entry);
    if (!named) return false;
    Feature sequence{.name = named->name};
    std::uint64_t count = 0;
    WireCursor steps(named->value);
    while (const auto step = steps.next()) {
      if (step->number != 1 || !step->is_delimited) return false;
      const auto feature = read_feature({named->name, step->bytes});
      if (!feature) return false;
      if (count++ == 0) sequence = *feature;
    }
    if (steps.is_malformed()) return false;
    sequence.is_sequence = true;
    sequence.steps = count;
    features.push_back(sequence);
  }
  return !entries.is_malformed();
}

}  // namespace

MessageKind read_features(std::span<const std::byte> record, std::vector<Feature>& features) {
  features.clear();
  bool is_sequence = false;
  WireCursor parts(record);
  while (const auto part = parts.next()) {
    const bool is_read = part->is_delimited && part->number <= 2 &&
                         (part->number == 1 ? read_map(part->bytes, features)
                                            : read_sequences(part->bytes, features));
    if (!is_read) {
      features.clear();
      return MessageKind::kOther;
    }
    is_sequence = is_sequence || part->number == 2;
  }
  if (parts.is_malformed()) features.clear();
  return parts.is_malformed() ? MessageKind::kOther
         : is_sequence        ? MessageKind::kSequenceExample
                              : MessageKind::kExample;
}

std::optional<std::uint64_t> WireCursor::varint() {
  const auto varint = read_varint(rest_);
  if (!varint) return std::nullopt;
  rest_ = rest_.subspan(varint->bytes);
  return varint->value;
}

std::optional<std::uint64_t> WireCursor::tag() {
  const auto tag = varint();
  return tag && *tag <= UINT32_MAX && *tag >> 3 != 0 ? tag : std::nullopt;
}

bool WireCursor::read_value(WireField& field) {
  field.encoded = rest_.data();
  std::optional<std::uint64_t> size;
  switch (field.type) {
    case WireType::kVarint: {
      const auto value = varint();
      field.is_varint = true;
      field.varint = value.value_or(0);
      return value.has_value();
    }
    case WireType::kDelimited:
      field.is_delimited = true;
      size = varint();
      break;
    case WireType::kFixed32:
    case WireType::kFixed64:
      size = field.type == WireType::kFixed32 ? 4 : 8;
      break;
    default:
      break;
  }
  if (!size || *size > rest_.size()) return false;
  field.bytes = rest_.first(*size);
  rest_ = rest_.subspan(*size);
  return true;
}

/// Finds the tag that ends a group. A group may hold other groups.
bool WireCursor::read_group(WireField& group) {
  const auto begin = rest_;
  group.encoded = begin.data();
  std::array<std::uint64_t, kDeepestGroup> open{group.number};
  for (std::size_t depth = 1; depth != 0;) {
    const auto after = rest_;
    const auto next = tag();
    if (!next) return false;
    WireField field{.number = *next >> 3, .type = static_cast<WireType>(*next & 7U)};
    if (field.type == WireType::kGroup) {
      if (depth == open.size()) return false;
      open[depth++] = field.number;
    } else if (field.type == WireType::kGroupEnd) {
      if (open[--depth] != field.number) return false;
      group.bytes = begin.first(begin.size() - after.size());
    } else if (!read_value(field)) {
      return false;
    }
  }
  return true;
}

std::optional<WireField> WireCursor::next() {
  if (rest_.empty()) return std::nullopt;
  if (const auto next_tag = tag()) {
    WireField field{.number = *next_tag >> 3, .type = static_cast<WireType>(*next_tag & 7U)};
    if (field.type == WireType::kGroup ? read_group(field) : read_value(field)) return field;
  }
  is_malformed_ = true;
  rest_ = {};
  return std::nullopt;
}

}  // namespace precache::tfrecord
