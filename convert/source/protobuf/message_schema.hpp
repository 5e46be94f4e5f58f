// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/descriptor.h>

#include <filesystem>
#include <string>

#include "convert/source/protobuf/message_path.hpp"
#include "formats/tfrecord/example_fields.hpp"

namespace precache {

/// How single values of a type, a FieldDescriptor::Type, are encoded.
[[nodiscard]] tfrecord::WireType wire_type(int type);

/// A message that a descriptor set describes.
class MessageSchema {
 public:
  /// Throws InvalidArgument if the file is missing, is not a descriptor set, or lacks the message;
  /// IoError if it cannot be read.
  MessageSchema(const std::filesystem::path& proto, const std::string& message);

  [[nodiscard]] const google::protobuf::Descriptor& message() const { return *message_; }

  /// Resolves names of fields separated by dots; `[pkg.name]` is an extension. An empty `label`
  /// means none. Throws InvalidArgument for a field that is missing or has the wrong type,
  /// Unsupported for a MessageSet.
  [[nodiscard]] MessagePaths paths(const std::string& image, const std::string& label) const;

 private:
  google::protobuf::DescriptorPool pool_;
  const google::protobuf::Descriptor* message_ = nullptr;
};

}  // namespace precache
