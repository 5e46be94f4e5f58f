// SPDX-License-Identifier: Apache-2.0
#include "convert/source/protobuf/message_images.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "convert/source/protobuf/message_schema.hpp"
#include "formats/bytes/little_endian.hpp"
#include "formats/bytes/text.hpp"
#include "formats/os/file.hpp"
#include "formats/shard/limits.hpp"

namespace precache {
namespace {

using google::protobuf::FieldDescriptor;
using tfrecord::WireCursor;
using tfrecord::WireField;
using tfrecord::WireType;

constexpr std::size_t kLongestVarint = 10;

bool is_rival(const MessageStep& step, std::uint64_t number) {
  return std::ranges::find(step.rivals, number) != step.rivals.end();
}

/// Whether a field is this step, and holds a message.
bool is_message(const WireField& field, const MessageStep& step) {
  return field.number == step.number &&
         field.type == (step.is_group ? WireType::kGroup : WireType::kDelimited);
}

/// The value of the bits on the wire; none if it does not fit a signed 64-bit integer.
std::optional<std::int64_t> integer_of(std::uint64_t bits, int type) {
  switch (type) {
    case FieldDescriptor::TYPE_INT32:
    case FieldDescriptor::TYPE_ENUM:
    case FieldDescriptor::TYPE_SFIXED32:
      return static_cast<std::int32_t>(bits);
    case FieldDescriptor::TYPE_UINT32:
    case FieldDescriptor::TYPE_FIXED32:
      return static_cast<std::uint32_t>(bits);
    case FieldDescriptor::TYPE_SINT32: {
      const auto half = static_cast<std::uint32_t>(bits);
      return static_cast<std::int32_t>((half >> 1) ^ (0U - (half & 1U)));
    }
    case FieldDescriptor::TYPE_SINT64:
      return static_cast<std::int64_t>((bits >> 1) ^ (0U - (bits & 1U)));
    case FieldDescriptor::TYPE_BOOL:
      return bits != 0 ? 1 : 0;
    case FieldDescriptor::TYPE_UINT64:
    case FieldDescriptor::TYPE_FIXED64:
      if (bits > INT64_MAX) return std::nullopt;
      return static_cast<std::int64_t>(bits);
    default:
      return static_cast<std::int64_t>(bits);
  }
}

}  // namespace

MessageImages::MessageImages(MessagePaths paths) : paths_(std::move(paths)) {
  for (std::size_t i = 0; i < paths_.image.size(); ++i) {
    if (paths_.image[i].is_repeated) last_repeated_ = i;
  }
  if (!paths_.label) return;
  const auto apart = std::ranges::mismatch(paths_.image, paths_.label->steps).in1;
  common_ = static_cast<std::size_t>(apart - paths_.image.begin());
  for (std::size_t i = 0; i < common_; ++i) {
    if (paths_.image[i].is_repeated) label_scope_ = i;
  }
}

const std::vector<MessageImage>* MessageImages::find(std::span<const std::byte> record) {
  images_.clear();
  label_ = {};
  if (!last_repeated_) images_.emplace_back();
  if (!walk(record, 0, 0)) return nullptr;
  if (!label_scope_) end_label_scope(0);
  return &images_;
}

/// `depth` steps of the image's path lead to `message`; `scope_begin` is the first image of the
/// repeated element, or record, that it is in.
// NOLINTNEXTLINE(misc-no-recursion): as deep as the path is long
bool MessageImages::walk(std::span<const std::byte> message, std::size_t depth,
                         std::size_t scope_begin) {
  const MessageStep& step = paths_.image[depth];
  if (paths_.label && depth == common_ && !walk_label(message, depth)) return false;
  WireCursor fields(message);
  while (const auto field = fields.next()) {
    if (is_rival(step, field->number)) {
      forget(depth, scope_begin);
    } else if (is_message(*field, step) && !step_into(*field, depth, scope_begin)) {
      return false;
    }
  }
  return !fields.is_malformed();
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as the path is long
bool MessageImages::step_into(const WireField& field, std::size_t depth, std::size_t scope_begin) {
  const bool is_element = paths_.image[depth].is_repeated;
  const std::size_t begin = is_element ? images_.size() : scope_begin;
  if (last_repeated_ && *last_repeated_ == depth) images_.emplace_back();
  if (depth + 1 == paths_.image.size()) {
    images_.back().bytes = field.bytes;
    return true;
  }
  if (is_label_scope(depth)) label_ = {};
  if (!walk(field.bytes, depth + 1, begin)) return false;
  if (is_label_scope(depth)) end_label_scope(begin);
  return true;
}

/// Another member of a oneof was set, which removes this one.
void MessageImages::forget(std::size_t depth, std::size_t scope_begin) {
  if (last_repeated_ && depth <= *last_repeated_) {
    images_.resize(scope_begin);
  } else {
    images_.back().bytes = {};
  }
  if (depth < common_ && !(label_scope_ && depth <= *label_scope_)) label_ = {};
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as the path is long
bool MessageImages::walk_label(std::span<const std::byte> message, std::size_t depth) {
  const LabelField& label = *paths_.label;
  const bool is_last = depth + 1 == label.steps.size();
  if (is_last && !label_.text && label.standard && label_.fault.empty()) {
    if (label.type == FieldDescriptor::TYPE_ENUM) {
      keep_label(static_cast<std::uint64_t>(std::stoll(*label.standard)));
      label_.values = 0;
    } else {
      label_.text = label.standard;
    }
  }
  WireCursor fields(message);
  while (const auto field = fields.next()) {
    if (!take_label_field(*field, depth)) return false;
  }
  return !fields.is_malformed();
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as the path is long
bool MessageImages::take_label_field(const WireField& field, std::size_t depth) {
  const MessageStep& step = paths_.label->steps[depth];
  if (is_rival(step, field.number)) {
    label_ = {};
  } else if (depth + 1 < paths_.label->steps.size()) {
    return !is_message(field, step) || walk_label(field.bytes, depth + 1);
  } else if (field.number == step.number) {
    return take_label(field);
  }
  return true;
}

/// False if it is a packed list that is malformed.
bool MessageImages::take_label(const WireField& field) {
  const LabelField& label = *paths_.label;
  if (label.type != FieldDescriptor::TYPE_STRING) {
    if (field.type == wire_type(label.type)) {
      keep_label(field.is_varint ? field.varint : little_endian(field.bytes));
    } else if (field.is_delimited && label.steps.back().is_repeated) {
      return take_packed(field.bytes);
    }
  } else if (field.is_delimited) {
    ++label_.values;
    const bool is_short = field.bytes.size() <= kLongestLabel;
    label_.fault = is_short ? "" : fmt::format("is a text of {} bytes", field.bytes.size());
    label_.text.reset();
    if (is_short) label_.text = std::string(trimmed(as_text(field.bytes)));
  }
  return true;
}

bool MessageImages::take_packed(std::span<const std::byte> list) {
  if (list.empty()) return true;
  const WireType type = wire_type(paths_.label->type);
  const auto ends_value = [](std::byte byte) { return (byte & std::byte{0x80}) == std::byte{0}; };
  if (type != WireType::kVarint) {
    const std::size_t width = type == WireType::kFixed32 ? 4 : 8;
    if (list.size() % width != 0) return false;
    keep_label(little_endian(list.first(width)));
    label_.values += list.size() / width - 1;
    return true;
  }
  std::uint64_t value = 0;
  std::size_t size = 0;
  do {
    if (size == list.size() || size == kLongestVarint) return false;
    value |= std::to_integer<std::uint64_t>(list[size] & std::byte{0x7f}) << 7 * size;
  } while (!ends_value(list[size++]));
  keep_label(value);
  label_.values +=
      static_cast<std::uint64_t>(std::ranges::count_if(list.subspan(size), ends_value));
  return true;
}

void MessageImages::keep_label(std::uint64_t bits) {
  const LabelField& label = *paths_.label;
  ++label_.values;
  label_.text.reset();
  label_.fault.clear();
  const auto value = integer_of(bits, label.type);
  if (!value) {
    label_.fault = fmt::format("is {}, which is too large for a label", bits);
  } else if (label.type != FieldDescriptor::TYPE_ENUM) {
    label_.text = std::to_string(*value);
  } else if (const auto known = label.enum_names.find(static_cast<std::int32_t>(*value));
             known != label.enum_names.end()) {
    label_.text = label.has_enum_labels ? known->second : std::to_string(*value);
  } else {
    label_.fault = fmt::format("is {}, which has no name in its enum", *value);
  }
}

void MessageImages::end_label_scope(std::size_t begin) {
  if (!paths_.label) return;
  if (paths_.label->steps.back().is_repeated && label_.values > 1) {
    label_ = {.fault = fmt::format("has {} values", label_.values)};
  }
  for (MessageImage& image : std::span(images_).subspan(begin)) {
    image.label = label_.text;
    image.label_fault = label_.fault;
  }
}

}  // namespace precache
