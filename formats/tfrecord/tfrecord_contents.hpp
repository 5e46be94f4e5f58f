// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <utility>

#include "formats/tfrecord/example_fields.hpp"
#include "precache/formats/contents.hpp"

namespace precache::tfrecord {

/// Counts what TFRecord files hold: Examples and SequenceExamples, and their features.
class ContentsSurvey {
 public:
  /// Borrows `messages`, which is shown every record, if there is one.
  explicit ContentsSurvey(RecordSurvey* messages = nullptr) : messages_(messages) {}

  /// Walks over the records of one more file; `file` is the whole of it. Throws CorruptData as
  /// RecordCursor does; what stood before that counts.
  void add(std::span<const std::byte> file, const std::filesystem::path& path);
  [[nodiscard]] TfrecordContents result() const;

 private:
  void count(const Feature& found);

  RecordSurvey* messages_;
  TfrecordContents counts_;
  std::map<std::pair<std::string, bool>, TfrecordContents::Feature> features_;
};

}  // namespace precache::tfrecord
