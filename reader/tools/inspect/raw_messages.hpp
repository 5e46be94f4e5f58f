// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "formats/tfrecord/message_tally.hpp"

namespace precache {

/// Counts the fields of records that are not tf.train.Examples by number, like
/// `protoc --decode_raw`. The type of a value with a length is a guess.
class RawMessages : public RecordSurvey {
 public:
  void take(std::span<const std::byte> record, bool is_example) override;
  [[nodiscard]] std::optional<MessageContents> result() const override;

 private:
  void take_message(std::span<const std::byte> message, tfrecord::FieldTally& tally, int depth);

  tfrecord::MessageTally tally_;
  std::uint64_t messages_ = 0;
  std::uint64_t malformed_ = 0;
};

}  // namespace precache
