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
  std::uint64_t in_record = 0;  // values in the current record
  std::optional<WireType> wire_type;
  bool is_mixed = false;  // of several wire types
  ValueRange values;
  ValueRange bytes;
  std::string content;
  // Of values with a length, to guess their type.
  bool may_be_text = true;
  bool may_be_message = true;
  std::map<std::uint64_t, std::unique_ptr<FieldTally>>
      fields;  // by the numbers that the caller chose
};

/// Counts the fields of messages, record by record.
class MessageTally {
 public:
  [[nodiscard]] FieldTally& root() { return root_; }
  /// The field of `parent` with this number, created if it is new; null if there are too many
  /// fields, as in hostile records.
  [[nodiscard]] FieldTally* find(FieldTally& parent, std::uint64_t number);
  /// Counts one value of the current record, or the `values` of a packed list.
  void count(FieldTally& field, const WireField& value, std::uint64_t values = 1);
  void end_record();

  /// All fields with their paths. `type_of` returns the type of a field, and whether to list the
  /// fields in it.
  struct Type {
    std::string name;
    bool has_fields = false;
  };
  [[nodiscard]] MessageContents result(Type (*type_of)(const FieldTally&)) const;

 private:
  FieldTally root_;
  std::vector<FieldTally*> touched_;  // by the current record
  std::size_t fields_ = 0;
  std::uint64_t records_ = 0;
  bool has_more_ = false;
};

}  // namespace precache::tfrecord
