// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

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
  /// What one record says of a feature.
  struct Note {
    Feature feature;
    std::uint64_t values = 0;
    bool is_sequence = false;
  };

  /// Whether the record is an Example or a SequenceExample.
  bool take(std::span<const std::byte> record);
  [[nodiscard]] bool read_context(std::span<const std::byte> features);
  [[nodiscard]] bool read_sequences(std::span<const std::byte> lists);
  void count(const Note& note);

  RecordSurvey* messages_;
  TfrecordContents counts_;
  std::map<std::pair<std::string, bool>, TfrecordContents::Feature> features_;
  std::vector<Note> notes_;  // of the record in work
};

}  // namespace precache::tfrecord
