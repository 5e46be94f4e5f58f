// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/tfrecord/example_fields.hpp"
#include "precache/formats/contents.hpp"

namespace precache::tfrecord {

/// Counts a field of messages, and the fields in it.
struct FieldTally {
  std::string name;  // in its message
  std::string type;
  std::uint64_t records = 0;
  std::uint64_t in_record = 0;  // values in the record in work
  std::optional<WireType> wire_type;
  bool is_mixed = false;  // of several wire types
  ValueRange values;
  ValueRange bytes;
  std::string content;
  // Of values with a length, to guess what they are.
  bool may_be_text = true;
  bool may_be_message = true;
  std::map<std::uint64_t, std::unique_ptr<FieldTally>> fields;  // by the caller's numbers
};

/// Counts the fields of messages, record by record.
class MessageTally {
 public:
  [[nodiscard]] FieldTally& root() { return root_; }
  /// The field of `parent` with this number, which is made if it is new; null where there are too
  /// many, as hostile records have.
  [[nodiscard]] FieldTally* find(FieldTally& parent, std::uint64_t number);
  /// Counts one value of the record in work; `values` of a packed list.
  void count(FieldTally& field, const WireField& value, std::uint64_t values = 1);
  void end_record();

  /// The fields whose path begins with one that is listed; `type_of` says the type, and whether to
  /// list the fields in it.
  struct Type {
    std::string name;
    bool has_fields = false;
  };
  [[nodiscard]] MessageContents result(Type (*type_of)(const FieldTally&)) const;

 private:
  FieldTally root_;
  std::vector<FieldTally*> touched_;  // by the record in work
  std::size_t fields_ = 0;
  std::uint64_t records_ = 0;
  bool has_more_ = false;
};

}  // namespace precache::tfrecord
