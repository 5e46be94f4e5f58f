// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <google/protobuf/descriptor.h>

#include <filesystem>
#include <string>

#include "convert/source/protobuf/message_path.hpp"

namespace precache {

/// A message that a descriptor set describes.
class MessageSchema {
 public:
  /// Throws InvalidArgument if the file is missing, is not a descriptor set, or lacks the message;
  /// IoError if it cannot be read.
  MessageSchema(const std::filesystem::path& proto, const std::string& message);

  [[nodiscard]] const google::protobuf::Descriptor& message() const { return *message_; }

  /// Resolves names of fields with dots between; `[pkg.name]` is an extension. An empty `label`
  /// means none. Throws InvalidArgument for a field that is missing or of another type than it has
  /// to be, Unsupported for what has no fixed place in a message.
  [[nodiscard]] MessagePaths paths(const std::string& image, const std::string& label) const;

 private:
  google::protobuf::DescriptorPool pool_;
  const google::protobuf::Descriptor* message_ = nullptr;
};

}  // namespace precache
