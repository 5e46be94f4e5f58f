// SPDX-License-Identifier: Apache-2.0
#include "formats/tfrecord/message_tally.hpp"

#include "formats/shard/file_kind.hpp"

namespace precache::tfrecord {
namespace {

// Far more than messages have. A hostile record could give each field a new number.
constexpr std::size_t kMostFields = 1000;

using TypeOf = MessageTally::Type (*)(const FieldTally&);

// NOLINTNEXTLINE(misc-no-recursion): as deep as the fields, whose depth the callers limit
void list(const FieldTally& message, const std::string& prefix, TypeOf type_of,
          std::vector<MessageContents::Field>& fields) {
  for (const auto& [number, field] : message.fields) {
    if (field->records == 0) continue;  // only in a record that was abandoned
    const MessageTally::Type type = type_of(*field);
    MessageContents::Field& listed = fields.emplace_back();
    listed.path = prefix + field->name;
    listed.type = type.name;
    if (field->wire_type && !field->is_mixed) {
      listed.wire_type = static_cast<unsigned>(*field->wire_type);
    }
    listed.records = field->records;
    listed.values = field->values;
    listed.bytes = field->bytes;
    listed.content = field->content;
    const std::string path = listed.path + ".";
    if (type.has_fields) list(*field, path, type_of, fields);
  }
}

}  // namespace

FieldTally* MessageTally::find(FieldTally& parent, std::uint64_t number) {
  const auto found = parent.fields.find(number);
  if (found != parent.fields.end()) return found->second.get();
  if (fields_ == kMostFields) {
    has_more_ = true;
    return nullptr;
  }
  ++fields_;
  auto& field = parent.fields[number];
  field = std::make_unique<FieldTally>();
  return field.get();
}

void MessageTally::count(FieldTally& field, const WireField& value, std::uint64_t values) {
  field.is_mixed = field.is_mixed || (field.wire_type && *field.wire_type != value.type);
  field.wire_type = value.type;
  if (field.in_record == 0) touched_.push_back(&field);
  field.in_record += values;
  if (value.type == WireType::kGroup) field.bytes.add(value.bytes.size());
  if (!value.is_delimited) return;
  field.bytes.add(value.bytes.size());
  if (field.content.empty()) field.content = image_file_kind(value.bytes);
}

void MessageTally::end_record() {
  ++records_;
  for (FieldTally* field : touched_) {
    if (field->in_record == 0) continue;  // touched by an empty list
    ++field->records;
    field->values.add(field->in_record);
    field->in_record = 0;
  }
  touched_.clear();
}

MessageContents MessageTally::result(TypeOf type_of) const {
  MessageContents contents;
  contents.records = records_;
  contents.has_more = has_more_;
  list(root_, "", type_of, contents.fields);
  return contents;
}

}  // namespace precache::tfrecord
