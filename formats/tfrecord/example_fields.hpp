// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

/// Finds the fields of a tf.train.Example in place. Protobuf's own parser would copy them and does
/// not report their offsets.
namespace precache::tfrecord {

/// The encoding of a field's value.
enum class WireType : std::uint8_t {
  kVarint = 0,
  kFixed64 = 1,
  kDelimited = 2,
  kGroup = 3,
  kGroupEnd = 4,
  kFixed32 = 5
};

/// One field of a protobuf message.
struct WireField {
  std::uint64_t number = 0;
  WireType type = WireType::kVarint;
  bool is_varint = false;  // else it has bytes
  std::uint64_t varint = 0;
  /// Of a length-delimited field, the 4 or 8 of a fixed one, or the fields of a group.
  std::span<const std::byte> bytes{};
  bool is_delimited = false;
  const std::byte* encoded =
      nullptr;  // the first byte after the tag: of the varint, or of the length
};

/// Walks over the fields of a message, without recursion and without reading their content.
class WireCursor {
 public:
  /// Borrows `message`.
  explicit WireCursor(std::span<const std::byte> message) : rest_(message) {}

  /// None at the end, or where the message is malformed.
  [[nodiscard]] std::optional<WireField> next();
  [[nodiscard]] bool is_malformed() const { return is_malformed_; }

 private:
  [[nodiscard]] std::optional<std::uint64_t> varint();
  [[nodiscard]] std::optional<std::uint64_t> tag();
  [[nodiscard]] bool read_value(WireField& field);
  [[nodiscard]] bool read_group(WireField& group);

  std::span<const std::byte> rest_;
  bool is_malformed_ = false;
};

enum class FeatureKind { kNone, kBytes, kFloats, kIntegers };

/// One entry of an Example's map of features, with the first of its values.
struct Feature {
  static constexpr std::size_t kMostIntegers = 4;

  std::string_view name;
  FeatureKind kind = FeatureKind::kNone;
  /// Of bytes: the number of values. Of integers: the number of values read, at most one more than
  /// are kept.
  std::size_t count = 0;
  std::span<const std::byte> bytes{};  // the first value
  std::array<std::int64_t, kMostIntegers> integers{};
  const std::byte* encoded = nullptr;  // the first value: its length, or its varint
  std::span<const std::byte> list{};   // the message with all values
  bool is_sequence = false;  // a list of a SequenceExample; the other members are of its first step
  std::uint64_t steps = 0;   // of a sequence
};

enum class MessageKind { kExample, kSequenceExample, kOther };

/// Replaces `features` by all features of a record, in their order. A record that is malformed, or
/// has fields that neither message has, is kOther and has no features. Reads no values of bytes,
/// and only the first few of integers.
MessageKind read_features(std::span<const std::byte> record, std::vector<Feature>& features);

}  // namespace precache::tfrecord
