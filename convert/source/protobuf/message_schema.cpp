// SPDX-License-Identifier: Apache-2.0
#include "convert/source/protobuf/message_schema.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <span>
#include <utility>

#include "formats/bytes/number_text.hpp"
#include "formats/bytes/utf8.hpp"
#include "formats/os/file.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::DescriptorPool;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptorProto;
using google::protobuf::FileDescriptorSet;

constexpr std::uint64_t kLargestSet = std::uint64_t{64} << 20;
constexpr std::size_t kMostNames = 20;
constexpr std::size_t kLongestPath = 64;  // in fields
constexpr const char* kSetHint =
    "protoc writes one: give it descriptor_set_out and include_imports.";

std::vector<std::byte> read_set(const std::filesystem::path& proto) {
  try {
    const std::uint64_t size = File(proto, O_RDONLY | O_NONBLOCK).size();
    if (size <= kLargestSet) return read_file(proto);
    throw InvalidArgument(fmt::format("`proto`: '{}' has {}, more than any descriptor set",
                                      proto.string(), size_text(size)),
                          kSetHint);
  } catch (const IoError& error) {
    if (error.code() != ENOENT) throw;
    throw InvalidArgument(fmt::format("`proto`: there is no file '{}'", proto.string()), kSetHint);
  }
}

/// Keeps the first error of a file.
class FirstError : public DescriptorPool::ErrorCollector {
 public:
  void AddError(const std::string& /*file*/, const std::string& element,
                const google::protobuf::Message* /*descriptor*/, ErrorLocation /*location*/,
                const std::string& message) override {
    if (text.empty()) text = fmt::format("{}: {}", element, message);
  }
  std::string text;
};

std::size_t edits_between(const std::string& one, const std::string& other) {
  std::vector<std::size_t> row(other.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= one.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= other.size(); ++j) {
      const std::size_t replaced = diagonal + (one[i - 1] == other[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row.back();
}

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
  for (std::size_t i = 0; i < shown; ++i) text += (i == 0 ? "" : ", ") + ranked[i].second;
  return shown < names.size() ? fmt::format("{}, and {} others", text, names.size() - shown) : text;
}

/// Names of fields with dots between; brackets hold the full name of an extension.
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
    throw InvalidArgument(
        fmt::format("`{}` '{}' is not a path of fields", argument, path),
        "Write the names of fields with dots between them, as in frame.images.image.");
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

std::optional<LabelType> label_type(FieldDescriptor::Type type) {
  switch (type) {
    case FieldDescriptor::TYPE_INT32:
      return LabelType::kInt32;
    case FieldDescriptor::TYPE_INT64:
      return LabelType::kInt64;
    case FieldDescriptor::TYPE_UINT32:
      return LabelType::kUint32;
    case FieldDescriptor::TYPE_UINT64:
      return LabelType::kUint64;
    case FieldDescriptor::TYPE_SINT32:
      return LabelType::kSint32;
    case FieldDescriptor::TYPE_SINT64:
      return LabelType::kSint64;
    case FieldDescriptor::TYPE_FIXED32:
      return LabelType::kFixed32;
    case FieldDescriptor::TYPE_FIXED64:
      return LabelType::kFixed64;
    case FieldDescriptor::TYPE_SFIXED32:
      return LabelType::kSfixed32;
    case FieldDescriptor::TYPE_SFIXED64:
      return LabelType::kSfixed64;
    case FieldDescriptor::TYPE_BOOL:
      return LabelType::kBool;
    case FieldDescriptor::TYPE_ENUM:
      return LabelType::kEnum;
    case FieldDescriptor::TYPE_STRING:
      return LabelType::kString;
    default:
      return std::nullopt;
  }
}

/// The value of a field that is not there, as text; none if it is then missing. Without presence
/// (proto3), writers leave out zeros.
std::optional<std::string> standard_of(const FieldDescriptor& field) {
  if (field.is_repeated()) return std::nullopt;
  if (field.has_presence() && !field.has_default_value()) return std::nullopt;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return std::to_string(field.default_value_int32());
    case FieldDescriptor::CPPTYPE_INT64:
      return std::to_string(field.default_value_int64());
    case FieldDescriptor::CPPTYPE_UINT32:
      return std::to_string(field.default_value_uint32());
    case FieldDescriptor::CPPTYPE_UINT64:
      return std::to_string(field.default_value_uint64());
    case FieldDescriptor::CPPTYPE_BOOL:
      return field.default_value_bool() ? "1" : "0";
    case FieldDescriptor::CPPTYPE_ENUM:
      return std::to_string(field.default_value_enum()->number());
    default:
      return field.default_value_string();
  }
}

LabelField label_of(const ResolvedPath& resolved, const std::string& path) {
  const FieldDescriptor& field = *resolved.field;
  const auto type = label_type(field.type());
  if (!type) {
    throw InvalidArgument(fmt::format("`label_key`: '{}' is of type {}", path, field.type_name()),
                          "A label is an integer, a bool, an enum or a string.");
  }
  LabelField label{resolved.steps, *type, standard_of(field)};
  if (const EnumDescriptor* values = field.enum_type()) {
    for (int i = 0; i < values->value_count(); ++i) {
      label.enum_names.emplace(values->value(i)->number(), values->value(i)->name());
    }
  }
  return label;
}

/// A label below a repeated field that the image is not below would be several.
void check_one_label(const MessagePaths& paths, const std::string& path) {
  const std::vector<MessageStep>& steps = paths.label->steps;
  const auto apart = std::ranges::mismatch(paths.image, steps).in2;
  const auto repeated = std::find_if(apart, steps.end() - 1,
                                     [](const MessageStep& step) { return step.is_repeated; });
  if (repeated >= steps.end() - 1) return;
  throw InvalidArgument(
      fmt::format("`label_key` '{}': '{}' is repeated, and the image is not in it, so an image "
                  "would have several labels",
                  path, repeated->name),
      "Name a field of the image's own message, or one that a record has once.");
}

}  // namespace

MessageSchema::MessageSchema(const std::filesystem::path& proto, const std::string& message) {
  const std::vector<std::byte> bytes = read_set(proto);
  const google::protobuf::LogSilencer silencer;  // what is wrong is said by what is thrown
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
        fmt::format("`image_key` must say which field of {} the image is", message_->full_name()),
        fields_of(*message_));
  }
  const ResolvedPath resolved = resolve(pool_, *message_, "image_key", image);
  if (resolved.field->type() != FieldDescriptor::TYPE_BYTES) {
    const Descriptor* const inner = resolved.field->message_type();
    throw InvalidArgument(
        fmt::format("`image_key`: '{}' is of type {}, and an image is of type "
                    "bytes",
                    image, inner != nullptr ? inner->full_name() : resolved.field->type_name()),
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
