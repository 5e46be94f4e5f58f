// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "formats/tar/tar_finder.hpp"
#include "formats/tfrecord/example_fields.hpp"
#include "precache/formats/contents.hpp"

// Counts the contents of files for `inspect`. For HDF5, see hdf5/hdf5_readers.hpp.

namespace precache::tar {

/// Counts the contents of tar archives: kinds of entries, extensions, and patterns of samples.
class ContentsSurvey {
 public:
  /// Adds one more archive, which `file` holds as a whole. Throws CorruptData and Unsupported as
  /// EntryCursor does; the entries before the fault are counted.
  void add(std::span<const std::byte> file, const std::filesystem::path& path);
  [[nodiscard]] TarContents result() const;

 private:
  using Extensions = std::vector<std::string>;

  void take(const FoundGroup& group);
  void take(const OtherEntry& other);
  void count_entry(EntryType type);

  TarContents counts_;
  std::map<std::string, ValueRange, std::less<>> extensions_;
  std::map<Extensions, std::uint64_t> patterns_;
};

}  // namespace precache::tar

namespace precache::tfrecord {

/// Counts the contents of TFRecord files: Examples, SequenceExamples and their features.
class ContentsSurvey {
 public:
  /// Borrows `messages`, which gets every record unless it is null.
  explicit ContentsSurvey(RecordSurvey* messages = nullptr) : messages_(messages) {}

  /// Adds the records of one more file, which `file` holds as a whole. Throws CorruptData as
  /// RecordCursor does; the records before the fault are counted.
  void add(std::span<const std::byte> file, const std::filesystem::path& path);
  [[nodiscard]] TfrecordContents result() const;

 private:
  void count(const Feature& found);

  RecordSurvey* messages_;
  TfrecordContents counts_;
  std::map<std::pair<std::string, bool>, TfrecordContents::Feature> features_;
};

}  // namespace precache::tfrecord
