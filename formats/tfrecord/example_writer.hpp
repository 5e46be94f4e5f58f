// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace precache::tfrecord {

/// Puts a tf.train.Example together, features in the order in which they are added.
class ExampleWriter {
 public:
  void add_integer(std::string_view feature, std::int64_t value);
  void add_bytes(std::string_view feature, std::string_view value);
  /// The Example between the length and the CRCs of a TFRecord.
  [[nodiscard]] std::string record() &&;

 private:
  void add(std::string_view feature, char list_field, std::string_view list);

  std::string features_;
};

}  // namespace precache::tfrecord
