// SPDX-License-Identifier: Apache-2.0
#include "precache/protobuf/message_survey.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "convert/source/protobuf/message_schema.hpp"
#include "formats/tfrecord/message_tally.hpp"

namespace precache {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using tfrecord::FieldTally;
using tfrecord::WireCursor;
using tfrecord::WireField;
using tfrecord::WireType;

constexpr int kDeepestMessage = 100;                        // as deep as protobuf's parsers go
constexpr std::uint64_t kUnknown = std::uint64_t{1} << 32;  // is added to the number of a field

bool is_packed(const FieldDescriptor& field, const WireField& value) {
  return value.is_delimited && field.is_packable();
}

/// How many values a packed list has.
std::uint64_t packed_values(const FieldDescriptor& field, std::span<const std::byte> list) {
  const WireType type = wire_type(field.type());
  if (type != WireType::kVarint) return list.size() / (type == WireType::kFixed32 ? 4 : 8);
  return static_cast<std::uint64_t>(std::ranges::count_if(
      list, [](std::byte byte) { return (byte & std::byte{0x80}) == std::byte{0}; }));
}

std::string type_text(const FieldDescriptor& field) {
  std::string type = field.type_name();
  if (const Descriptor* message = field.message_type()) {
    const bool is_group = field.type() == FieldDescriptor::TYPE_GROUP;
    type = (is_group ? "group " : "") + message->full_name();
  } else if (field.enum_type() != nullptr) {
    type = "enum " + field.enum_type()->full_name();
  }
  if (field.is_map()) return "map";
  return field.is_repeated() ? "repeated " + type : type;
}

const char* unknown_text(WireType type) {
  switch (type) {
    case WireType::kVarint:
      return "unknown varint";
    case WireType::kFixed64:
      return "unknown fixed64";
    case WireType::kFixed32:
      return "unknown fixed32";
    case WireType::kGroup:
      return "unknown group";
    default:
      return "unknown bytes";
  }
}

class MessageSurvey : public RecordSurvey {
 public:
  MessageSurvey(const std::filesystem::path& proto, const std::string& message)
      : schema_(proto, message) {}

  void take(std::span<const std::byte> record, bool /*is_example*/) override {
    if (!is_message(record, schema_.message(), 1)) return void(++malformed_);
    count(record, schema_.message(), tally_.root());
    tally_.end_record();
  }

  [[nodiscard]] std::optional<MessageContents> result() const override {
    MessageContents contents = tally_.result([](const FieldTally& field) {
      return tfrecord::MessageTally::Type{field.type, true};
    });
    contents.message = schema_.message().full_name();
    contents.malformed = malformed_;
    return contents;
  }

 private:
  /// The field that a value is of; none if it is unknown.
  [[nodiscard]] const FieldDescriptor* known(const Descriptor& message,
                                             const WireField& value) const {
    const int number = static_cast<int>(value.number);
    const FieldDescriptor* field = message.FindFieldByNumber(number);
    if (field == nullptr && message.IsExtensionNumber(number)) {
      field = message.file()->pool()->FindExtensionByNumber(&message, number);
    }
    const bool fits =
        field != nullptr && (wire_type(field->type()) == value.type || is_packed(*field, value));
    return fits ? field : nullptr;
  }

  // NOLINTNEXTLINE(misc-no-recursion): limited by kDeepestMessage
  [[nodiscard]] bool is_message(std::span<const std::byte> bytes, const Descriptor& message,
                                int depth) const {
    if (depth > kDeepestMessage) return false;
    WireCursor values(bytes);
    while (const auto value = values.next()) {
      const FieldDescriptor* const field = known(message, *value);
      if (field == nullptr || field->message_type() == nullptr) continue;
      if (!is_message(value->bytes, *field->message_type(), depth + 1)) return false;
    }
    return !values.is_malformed();
  }

  // NOLINTNEXTLINE(misc-no-recursion): is_message() has checked the depth
  void count(std::span<const std::byte> bytes, const Descriptor& message, FieldTally& tally) {
    WireCursor values(bytes);
    while (const auto value = values.next()) {
      const FieldDescriptor* const field = known(message, *value);
      FieldTally* const found =
          tally_.find(tally, value->number + (field == nullptr ? kUnknown : 0));
      if (found == nullptr) continue;
      if (field == nullptr) {
        if (found->name.empty()) found->name = fmt::format("{}", value->number);
        found->type = unknown_text(value->type);
        tally_.count(*found, *value);
        continue;
      }
      if (found->name.empty()) {
        found->name = field->is_extension() ? "[" + field->full_name() + "]" : field->name();
        found->type = type_text(*field);
      }
      const bool packed = is_packed(*field, *value);
      tally_.count(*found, *value, packed ? packed_values(*field, value->bytes) : 1);
      if (field->message_type() != nullptr) count(value->bytes, *field->message_type(), *found);
    }
  }

  MessageSchema schema_;
  tfrecord::MessageTally tally_;
  std::uint64_t malformed_ = 0;
};

}  // namespace

std::unique_ptr<RecordSurvey> survey_messages(const std::filesystem::path& proto,
                                              const std::string& message) {
  return std::make_unique<MessageSurvey>(proto, message);
}

}  // namespace precache
