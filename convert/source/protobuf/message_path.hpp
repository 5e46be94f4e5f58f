// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

// Where image and label are in a message, as a descriptor says, without the types of protobuf.
namespace precache {

/// A field on the way from a message to a value.
struct MessageStep {
  std::string name{};
  std::uint64_t number = 0;
  bool is_repeated = false;
  bool is_group = false;
  std::vector<std::uint64_t> rivals{};  // numbers of the other members of its oneof

  bool operator==(const MessageStep&) const = default;
};

struct LabelField {
  std::vector<MessageStep> steps{};
  int type = 0;  // a FieldDescriptor::Type; descriptor.proto fixes the numbers
  /// The value in a message that lacks the field; none if such a message has no label.
  std::optional<std::string> standard{};
  std::map<std::int32_t, std::string> enum_names{};  // the first name of each number
  bool has_enum_labels = false;                      // a value's label is its name, not its number
};

/// Where in a message the images are, and their labels.
struct MessagePaths {
  std::vector<MessageStep> image;
  std::optional<LabelField> label;
};

/// Resolves the keys, names of fields with dots between, in a message of the descriptor set
/// `proto`; an empty `label_key` means none. Throws as MessageSchema does.
[[nodiscard]] MessagePaths find_message_paths(const std::filesystem::path& proto,
                                              const std::string& message,
                                              const std::string& image_key,
                                              const std::string& label_key);

}  // namespace precache
