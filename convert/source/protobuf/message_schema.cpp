// SPDX-License-Identifier: Apache-2.0
#include "convert/source/protobuf/message_schema.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>

#include "formats/bytes/number_text.hpp"
#include "formats/bytes/text.hpp"
#include "formats/bytes/utf8.hpp"
#include "formats/os/file.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FieldDescriptorProto;
using google::protobuf::FileDescriptorProto;
using google::protobuf::FileDescriptorSet;

constexpr std::uint64_t kLargestSet = std::uint64_t{64} << 20;
constexpr std::size_t kMostNames = 20;
constexpr std::size_t kLongestPath = 64;  // in fields
constexpr const char* kSetHint =
    "Make one with protoc and its options descriptor_set_out and include_imports.";

std::vector<std::byte> read_set(const std::filesystem::path& proto) {
  try {
    const std::uint64_t size = File(proto, O_RDONLY | O_NONBLOCK).size();
    if (size <= kLargestSet) return read_file(proto);
    throw InvalidArgument(
        fmt::format("`proto`: '{}' has {}, which is too large for a descriptor set", proto.string(),
                    size_text(size)),
        kSetHint);
  } catch (const IoError& error) {
    if (error.code() != ENOENT) throw;
    throw InvalidArgument(fmt::format("`proto`: there is no file '{}'", proto.string()), kSetHint);
  }
}

/// Keeps the first error.
class FirstError : public DescriptorPool::ErrorCollector {
 public:
  void AddError(const std::string& /*file*/, const std::string& element,
                const google::protobuf::Message* /*descriptor*/, ErrorLocation /*location*/,
                const std::string& message) override {
    if (text.empty()) text = fmt::format("{}: {}", element, message);
  }
  std::string text;
};

std::string last_part(const std::string& name) { return name.substr(name.rfind('.') + 1); }

// NOLINTNEXTLINE(misc-no-recursion): protobuf limits how deep messages are nested
void add_names(
    const google::protobuf::RepeatedPtrField<google::protobuf::DescriptorProto>& messages,
    const std::string& prefix, std::vector<std::string>& names) {
  for (const auto& message : messages) {
    const std::string name = prefix + message.name();
    if (!message.options().map_entry()) names.push_back(name);
    add_names(message.nested_type(), name + ".", names);
  }
}

/// The names of messages that are most like `wanted`.
std::string near_names(const FileDescriptorSet& set, const std::string& wanted) {
  constexpr std::size_t kNearNames = 5;
  constexpr std::size_t kComparedLetters = 100;
  constexpr std::size_t kComparedNames = 10'000;
  std::vector<std::string> names;
  for (const FileDescriptorProto& file : set.file()) {
    add_names(file.message_type(), file.package().empty() ? "" : file.package() + ".", names);
  }
  const std::string part = last_part(wanted).substr(0, kComparedLetters);
  std::vector<std::pair<std::size_t, std::string>> ranked;
  for (const std::string& name : std::span(names).first(std::min(names.size(), kComparedNames))) {
    ranked.emplace_back(edits_between(part, last_part(name).substr(0, kComparedLetters)), name);
  }
  const std::size_t shown = std::min(kNearNames, ranked.size());
  std::ranges::partial_sort(ranked, ranked.begin() + static_cast<std::ptrdiff_t>(shown));
  std::string text;
  for (const auto& [edits, name] : std::span(ranked).first(shown)) {
    text += (text.empty() ? "" : ", ") + name;
  }
  return shown < names.size() ? fmt::format("{}, and {} others", text, names.size() - shown) : text;
}

/// Splits names of fields at the dots; brackets contain the full name of an extension.
std::vector<std::string> split_path(const char* argument, const std::string& path) {
  std::vector<std::string> parts(1);
  bool in_brackets = false;
  for (const char letter : path) {
    if (letter == '.' && !in_brackets) {
      parts.emplace_back();
      continue;
    }
    if (letter == '[' || letter == ']') in_brackets = letter == '[';
    parts.back() += letter;
  }
  if (parts.size() > kLongestPath || std::ranges::count(parts, std::string()) != 0) {
    throw InvalidArgument(fmt::format("`{}` '{}' is not a path of fields", argument, path),
                          "Separate names of fields by dots, as in frame.images.image.");
  }
  return parts;
}

std::string fields_of(const Descriptor& message) {
  std::vector<std::string> names;
  const int shown = std::min(message.field_count(), static_cast<int>(kMostNames));
  for (int i = 0; i < shown; ++i) names.push_back(message.field(i)->name());
  if (shown < message.field_count()) names.emplace_back("...");
  return names.empty() ? "It has no fields." : fmt::format("It has: {}.", fmt::join(names, ", "));
}

MessageStep step_of(const FieldDescriptor& field, const std::string& name) {
  MessageStep step{.name = name,
                   .number = static_cast<std::uint64_t>(field.number()),
                   .is_repeated = field.is_repeated(),
                   .is_group = field.type() == FieldDescriptor::TYPE_GROUP,
                   .rivals = {}};
  if (const auto* oneof = field.real_containing_oneof()) {
    for (int i = 0; i < oneof->field_count(); ++i) {
      const int number = oneof->field(i)->number();
      if (number != field.number()) step.rivals.push_back(static_cast<std::uint64_t>(number));
    }
  }
  return step;
}

struct ResolvedPath {
  std::vector<MessageStep> steps;
  const FieldDescriptor* field = nullptr;  // the last
};

ResolvedPath resolve(const DescriptorPool& pool, const Descriptor& root, const char* argument,
                     const std::string& path) {
  ResolvedPath resolved;
  const Descriptor* message = &root;
  std::string before;
  for (const std::string& name : split_path(argument, path)) {
    if (message == nullptr) {
      throw InvalidArgument(fmt::format("`{}`: '{}' is of type {}, which has no fields", argument,
                                        before, resolved.field->type_name()));
    }
    if (message->options().message_set_wire_format()) {
      throw Unsupported(
          fmt::format("`{}`: '{}' is a MessageSet ({})", argument, before, message->full_name()));
    }
    const bool is_extension = name.starts_with('[') && name.ends_with(']');
    resolved.field =
        is_extension ? pool.FindExtensionByPrintableName(message, name.substr(1, name.size() - 2))
                     : message->FindFieldByName(name);
    if (resolved.field == nullptr) {
      throw InvalidArgument(
          fmt::format("`{}` '{}': message {} has no {} '{}'", argument, path, message->full_name(),
                      is_extension ? "extension" : "field", name),
          fields_of(*message));
    }
    resolved.steps.push_back(step_of(*resolved.field, name));
    message = resolved.field->message_type();
    before += (before.empty() ? "" : ".") + name;
  }
  return resolved;
}

bool may_be_label(const FieldDescriptor& field) {
  switch (field.type()) {
    case FieldDescriptor::TYPE_DOUBLE:
    case FieldDescriptor::TYPE_FLOAT:
    case FieldDescriptor::TYPE_GROUP:
    case FieldDescriptor::TYPE_MESSAGE:
    case FieldDescriptor::TYPE_BYTES:
      return false;
    default:
      return true;
  }
}

/// The value of a field that is absent, as text; none if that means no value. Without presence
/// (proto3), writers omit zeros.
std::optional<std::string> standard_of(const FieldDescriptor& field) {
  if (field.is_repeated()) return std::nullopt;
  if (field.has_presence() && !field.has_default_value()) return std::nullopt;
  if (field.enum_type() != nullptr) return std::to_string(field.default_value_enum()->number());
  if (field.type() == FieldDescriptor::TYPE_BOOL) return field.default_value_bool() ? "1" : "0";
  if (field.type() == FieldDescriptor::TYPE_STRING) return field.default_value_string();
  FieldDescriptorProto described;
  field.CopyTo(&described);  // has the default in decimal digits
  return field.has_default_value() ? described.default_value() : "0";
}

LabelField label_of(const ResolvedPath& resolved, const std::string& path) {
  const FieldDescriptor& field = *resolved.field;
  if (!may_be_label(field)) {
    throw InvalidArgument(fmt::format("`label_key`: '{}' is of type {}", path, field.type_name()),
                          "A label must be an integer, a bool, an enum or a string.");
  }
  LabelField label{resolved.steps, field.type(), standard_of(field)};
  if (const EnumDescriptor* values = field.enum_type()) {
    for (int i = 0; i < values->value_count(); ++i) {
      label.enum_names.emplace(values->value(i)->number(), values->value(i)->name());
    }
  }
  return label;
}

/// Throws if the label is below a repeated field that the image is not below: it would be several.
void check_one_label(const MessagePaths& paths, const std::string& path) {
  const std::vector<MessageStep>& steps = paths.label->steps;
  const auto apart = std::ranges::mismatch(paths.image, steps).in2;
  const auto repeated = std::find_if(apart, steps.end() - 1,
                                     [](const MessageStep& step) { return step.is_repeated; });
  if (repeated >= steps.end() - 1) return;
  throw InvalidArgument(
      fmt::format("`label_key` '{}' gives several labels per image, because '{}' is repeated", path,
                  repeated->name),
      "Name a field in the message of the image, or one that is not repeated.");
}

}  // namespace

tfrecord::WireType wire_type(int type) {
  switch (type) {
    case FieldDescriptor::TYPE_DOUBLE:
    case FieldDescriptor::TYPE_FIXED64:
    case FieldDescriptor::TYPE_SFIXED64:
      return tfrecord::WireType::kFixed64;
    case FieldDescriptor::TYPE_FLOAT:
    case FieldDescriptor::TYPE_FIXED32:
    case FieldDescriptor::TYPE_SFIXED32:
      return tfrecord::WireType::kFixed32;
    case FieldDescriptor::TYPE_STRING:
    case FieldDescriptor::TYPE_BYTES:
    case FieldDescriptor::TYPE_MESSAGE:
      return tfrecord::WireType::kDelimited;
    case FieldDescriptor::TYPE_GROUP:
      return tfrecord::WireType::kGroup;
    default:
      return tfrecord::WireType::kVarint;
  }
}

MessageSchema::MessageSchema(const std::filesystem::path& proto, const std::string& message) {
  const std::vector<std::byte> bytes = read_set(proto);
  const google::protobuf::LogSilencer silencer;  // the exceptions below say what is wrong
  FileDescriptorSet set;
  if (!set.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) || set.file().empty()) {
    throw InvalidArgument(fmt::format("`proto`: '{}' is not a descriptor set", proto.string()),
                          kSetHint);
  }
  for (const FileDescriptorProto& file : set.file()) {
    FirstError error;
    if (pool_.BuildFileCollectingErrors(file, &error) != nullptr) continue;
    throw InvalidArgument(
        fmt::format("`proto`: '{}' is not a complete descriptor set: {}: {}", proto.string(),
                    printable(file.name()), printable(error.text)),
        kSetHint);
  }
  message_ = pool_.FindMessageTypeByName(message);
  if (message_ != nullptr) return;
  throw InvalidArgument(
      fmt::format("`message`: '{}' has no message '{}'", proto.string(), message),
      fmt::format("It has: {}. Give the full name, with the package.", near_names(set, message)));
}

MessagePaths MessageSchema::paths(const std::string& image, const std::string& label) const {
  if (image.empty()) {
    throw InvalidArgument(
        fmt::format("`image_key` must say which field of {} is the image", message_->full_name()),
        fields_of(*message_));
  }
  const ResolvedPath resolved = resolve(pool_, *message_, "image_key", image);
  if (resolved.field->type() != FieldDescriptor::TYPE_BYTES) {
    const Descriptor* const inner = resolved.field->message_type();
    throw InvalidArgument(
        fmt::format("`image_key`: '{}' is of type {}, but images are of type bytes", image,
                    inner != nullptr ? inner->full_name() : resolved.field->type_name()),
        inner != nullptr ? fields_of(*inner) : "");
  }
  MessagePaths paths{resolved.steps, std::nullopt};
  if (label.empty()) return paths;
  paths.label = label_of(resolve(pool_, *message_, "label_key", label), label);
  check_one_label(paths, label);
  return paths;
}

MessagePaths find_message_paths(const std::filesystem::path& proto, const std::string& message,
                                const std::string& image_key, const std::string& label_key) {
  return MessageSchema(proto, message).paths(image_key, label_key);
}

}  // namespace precache
