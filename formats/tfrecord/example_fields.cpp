// SPDX-License-Identifier: Apache-2.0
#include "formats/tfrecord/example_fields.hpp"

#include "formats/os/file.hpp"

namespace precache::tfrecord {
namespace {

constexpr int kLongestVarint = 10;
constexpr std::size_t kDeepestGroup = 100;  // as deep as protobuf's parsers go

/// Whether the list is well-formed; fills in its first value and their number.
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

/// As many varints as are wanted of a packed list.
bool read_packed(std::span<const std::byte> packed, Feature& feature) {
  while (!packed.empty() && feature.count <= Feature::kMostIntegers) {
    std::uint64_t value = 0;
    std::size_t size = 0;
    for (bool continues = true; continues; ++size) {
      if (size == packed.size() || size == kLongestVarint) return false;
      const auto byte = std::to_integer<std::uint64_t>(packed[size]);
      value |= (byte & 0x7fU) << 7 * size;
      continues = (byte & 0x80U) != 0;
    }
    keep(value, packed.data(), feature);
    packed = packed.subspan(size);
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

/// None if it is no such entry.
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

/// None if the message is no tf.train.Feature.
std::optional<Feature> read_feature(const MapEntry& entry) {
  Feature feature{.name = entry.name};
  WireCursor lists(entry.value);
  while (const auto list = lists.next()) {
    if (!list->is_delimited) return std::nullopt;
    feature = {.name = entry.name, .list = list->bytes};  // of several kinds the last holds
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
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < kLongestVarint && i < rest_.size(); ++i) {
    const auto byte = std::to_integer<std::uint64_t>(rest_[i]);
    value |= (byte & 0x7fU) << 7 * i;  // of the tenth byte, one bit counts
    if ((byte & 0x80U) == 0) {
      rest_ = rest_.subspan(i + 1);
      return value;
    }
  }
  return std::nullopt;
}

std::optional<WireField> WireCursor::fail() {
  is_malformed_ = true;
  rest_ = {};
  return std::nullopt;
}

std::optional<std::uint64_t> WireCursor::tag() {
  const auto tag = varint();
  return tag && *tag <= UINT32_MAX && *tag >> 3 != 0 ? tag : std::nullopt;
}

bool WireCursor::skip_value(WireType type) {
  std::uint64_t size = 0;
  if (type == WireType::kVarint) return varint().has_value();
  if (type == WireType::kDelimited) {
    const auto length = varint();
    if (!length) return false;
    size = *length;
  } else if (type == WireType::kFixed32 || type == WireType::kFixed64) {
    size = type == WireType::kFixed32 ? 4 : 8;
  } else {
    return false;
  }
  if (size > rest_.size()) return false;
  rest_ = rest_.subspan(size);
  return true;
}

/// Finds the tag that ends a group, which may hold others.
bool WireCursor::read_group(WireField& group) {
  const auto begin = rest_;
  std::array<std::uint64_t, kDeepestGroup> open{group.number};
  for (std::size_t depth = 1; depth != 0;) {
    const auto after = rest_;
    const auto next = tag();
    if (!next) return false;
    const auto type = static_cast<WireType>(*next & 7U);
    if (type == WireType::kGroup) {
      if (depth == open.size()) return false;
      open[depth++] = *next >> 3;
    } else if (type == WireType::kGroupEnd) {
      if (open[--depth] != *next >> 3) return false;
      group.bytes = begin.first(begin.size() - after.size());
    } else if (!skip_value(type)) {
      return false;
    }
  }
  return true;
}

std::optional<WireField> WireCursor::next() {
  if (rest_.empty()) return std::nullopt;
  const auto next_tag = tag();
  if (!next_tag) return fail();
  WireField field{.number = *next_tag >> 3,
                  .type = static_cast<WireType>(*next_tag & 7U),
                  .encoded = rest_.data()};
  const auto after_tag = rest_;
  switch (field.type) {
    case WireType::kVarint: {
      const auto value = varint();
      if (!value) return fail();
      field.is_varint = true;
      field.varint = *value;
      return field;
    }
    case WireType::kGroup:
      return read_group(field) ? std::optional(field) : fail();
    case WireType::kDelimited: {
      const auto length = varint();
      if (!length || *length > rest_.size()) return fail();
      field.is_delimited = true;
      field.bytes = rest_.first(*length);
      rest_ = rest_.subspan(*length);
      return field;
    }
    default:
      if (!skip_value(field.type)) return fail();
      field.bytes = after_tag.first(after_tag.size() - rest_.size());
      return field;
  }
}

}  // namespace precache::tfrecord
