// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "convert/source/protobuf/message_path.hpp"
#include "formats/tfrecord/example_fields.hpp"

namespace precache {

/// An image in a message.
struct MessageImage {
  std::span<const std::byte> bytes{};  // empty: the message lacks the field
  std::optional<std::string> label;    // a number in digits, or a name
  std::string label_fault;             // why the label is missing, if known
};

/// Finds images and labels in messages, without copying or parsing anything else.
///
/// Follows the rules of protobuf: the last value of a field that is not repeated counts, the parts
/// of a message that comes in parts are merged, a member of a oneof replaces the others, and a
/// field of the wrong wire type is unknown.
class MessageImages {
 public:
  explicit MessageImages(MessagePaths paths);

  [[nodiscard]] const MessagePaths& paths() const { return paths_; }
  /// Whether each element of a repeated field is a sample; else each record is one.
  [[nodiscard]] bool may_have_several() const { return last_repeated_.has_value(); }

  /// The images of a record, which they borrow from, until the next call; null if the record is
  /// not a message.
  [[nodiscard]] const std::vector<MessageImage>* find(std::span<const std::byte> record);

 private:
  struct Label {
    std::optional<std::string> text{};
    std::uint64_t values = 0;
    std::string fault{};
  };

  [[nodiscard]] bool walk(std::span<const std::byte> message, std::size_t depth,
                          std::size_t scope_begin);
  [[nodiscard]] bool step_into(const tfrecord::WireField& field, std::size_t depth,
                               std::size_t scope_begin);
  [[nodiscard]] bool walk_label(std::span<const std::byte> message, std::size_t depth);
  [[nodiscard]] bool take_label_field(const tfrecord::WireField& field, std::size_t depth);
  void forget(std::size_t depth, std::size_t scope_begin);
  [[nodiscard]] bool take_label(const tfrecord::WireField& field);
  [[nodiscard]] bool take_packed(std::span<const std::byte> list);
  void keep_label(std::uint64_t bits);
  void end_label_scope(std::size_t begin);
  [[nodiscard]] bool is_label_scope(std::size_t depth) const {
    return label_scope_ && *label_scope_ == depth;
  }

  MessagePaths paths_;
  std::optional<std::size_t> last_repeated_;  // step of the image's path
  std::size_t common_ = 0;                    // steps that both paths have
  std::optional<std::size_t> label_scope_;    // the last repeated one of them
  Label label_;
  std::vector<MessageImage> images_;
};

}  // namespace precache
