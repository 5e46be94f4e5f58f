// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "tests/support/bytes.hpp"

namespace precache::test {

/// One field of a protobuf message: number, and either a varint or bytes.
struct ProtobufField {
  std::uint64_t number = 0;
  std::uint64_t varint = 0;
  std::span<const std::byte> bytes;
  const std::byte* begin = nullptr;  // of the tag
};

/// Just enough of the wire format, by the book, to walk a tf.train.Example.
class ProtobufReader {
 public:
  explicit ProtobufReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  [[nodiscard]] bool at_end() const { return rest_.empty(); }

  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
      if (rest_.empty()) throw std::runtime_error("a varint is cut");
      const auto byte = std::to_integer<std::uint64_t>(rest_[0]);
      rest_ = rest_.subspan(1);
      if (shift < 64) value |= (byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    throw std::runtime_error("a varint is longer than ten bytes");
  }

  ProtobufField field() {
    ProtobufField field;
    field.begin = rest_.data();
    const std::uint64_t tag = varint();
    field.number = tag >> 3;
    if ((tag & 7) == 0) {
      field.varint = varint();
    } else if ((tag & 7) == 2) {
      const std::uint64_t size = varint();
      if (size > rest_.size()) throw std::runtime_error("a field runs past the end");
      field.bytes = rest_.first(size);
      rest_ = rest_.subspan(size);
    } else {
      throw std::runtime_error("unexpected wire type in an Example");
    }
    return field;
  }

  /// The only field of a message.
  static ProtobufField only_field(std::span<const std::byte> bytes, std::uint64_t number) {
    ProtobufReader reader(bytes);
    const ProtobufField field = reader.field();
    if (field.number != number || !reader.at_end())
      throw std::runtime_error("not the field that was expected");
    return field;
  }

 private:
  std::span<const std::byte> rest_;
};

/// A feature of a tf.train.Example that has one value.
struct ExampleFeature {
  std::string name;
  std::uint64_t list = 0;            // 1: bytes, 3: integers
  std::span<const std::byte> value;  // the bytes, or the packed varints
  std::size_t entry_bytes = 0;       // of the whole map entry
};

inline std::vector<ExampleFeature> features_of_example(std::span<const std::byte> example) {
  std::vector<ExampleFeature> features;
  ProtobufReader entries(ProtobufReader::only_field(example, 1).bytes);
  while (!entries.at_end()) {
    const ProtobufField entry = entries.field();
    if (entry.number != 1) throw std::runtime_error("no map entry");
    ProtobufReader reader(entry.bytes);
    const ProtobufField name = reader.field();
    const ProtobufField value = reader.field();
    if (name.number != 1 || value.number != 2 || !reader.at_end())
      throw std::runtime_error("no map entry");
    ProtobufReader feature(value.bytes);
    const ProtobufField list = feature.field();
    if (!feature.at_end()) throw std::runtime_error("a feature of two kinds");
    const auto list_value = ProtobufReader::only_field(list.bytes, 1).bytes;
    const auto* end = entry.bytes.data() + entry.bytes.size();
    features.push_back({text_of(name.bytes), list.number, list_value,
                        static_cast<std::size_t>(end - entry.begin)});
  }
  return features;
}

}  // namespace precache::test
