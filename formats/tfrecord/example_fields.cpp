// SPDX-License-Identifier: Apache-2.0
#include "formats/tfrecord/example_fields.hpp"

#include "formats/os/file.hpp"

namespace precache::tfrecord {
namespace {

constexpr int kLongestVarint = 10;

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

std::optional<WireField> WireCursor::next() {
  if (rest_.empty()) return std::nullopt;
  const auto tag = varint();
  if (!tag || *tag > UINT32_MAX || *tag >> 3 == 0) return fail();
  WireField field{.number = *tag >> 3, .encoded = rest_.data()};
  std::uint64_t size = 0;
  switch (*tag & 7U) {
    case 0: {
      const auto value = varint();
      if (!value) return fail();
      field.is_varint = true;
      field.varint = *value;
      return field;
    }
    case 1:
      size = 8;
      break;
    case 2: {
      const auto length = varint();
      if (!length) return fail();
      size = *length;
      field.is_delimited = true;
      break;
    }
    case 5:
      size = 4;
      break;
    default:
      return fail();  // groups have not been written for many years
  }
  if (size > rest_.size()) return fail();
  field.bytes = rest_.first(size);
  rest_ = rest_.subspan(size);
  return field;
}

}  // namespace precache::tfrecord
