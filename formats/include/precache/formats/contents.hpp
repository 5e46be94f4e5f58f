// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace precache {

/// The count, range and total of some numbers.
struct ValueRange {
  std::uint64_t count = 0;
  std::uint64_t smallest = 0;
  std::uint64_t largest = 0;
  std::uint64_t total = 0;

  void add(std::uint64_t value) {
    smallest = count == 0 ? value : std::min(smallest, value);
    largest = std::max(largest, value);
    total += value;
    ++count;
  }
  bool operator==(const ValueRange&) const = default;
};

// The contents of shards, whether or not precache can read their samples. Names are the bytes in
// the file, which may not be UTF-8.

/// The entries of tar archives by kind, and the samples that webdataset would make of them.
struct TarContents {
  /// The files with one extension.
  struct Extension {
    std::string name;  // the part after the first dot of the base name: "jpg", "seg.png"
    ValueRange bytes;  // of its files
  };
  /// Neighbours with the same path up to that dot are a sample, as in webdataset.
  struct Pattern {
    std::vector<std::string> extensions;  // in the order of the archive
    std::uint64_t samples = 0;
  };
  std::uint64_t files = 0;
  std::uint64_t directories = 0;
  std::uint64_t links = 0;
  std::uint64_t sparse_files = 0;
  std::uint64_t others = 0;
  std::uint64_t ungrouped_files =
      0;  // without an extension, or with a name that webdataset ignores
  std::uint64_t samples = 0;
  std::vector<Extension> extensions;  // the most frequent first
  std::vector<Pattern> patterns;      // the most frequent first
  bool has_more = false;              // than the lists hold
};

/// The fields of records that are protobuf messages.
struct MessageContents {
  /// The values at one place of the messages.
  struct Field {
    std::string path;  // names, or numbers without a descriptor, with dots between: "frame.image"
    std::string type;  // from the descriptor; without one, guessed from the bytes
    std::optional<unsigned> wire_type;  // 0, 1, 2, 3 or 5; none if it differs between values
    std::uint64_t records = 0;
    ValueRange values;    // in each record that has it
    ValueRange bytes;     // of each value that has a length
    std::string content;  // the kind of image, by its first bytes: "JPEG", "PNG" …
  };
  std::string message;          // its full name; empty without a descriptor
  std::uint64_t records = 0;    // records that are such messages
  std::uint64_t malformed = 0;  // records that are not
  std::vector<Field> fields;    // by path, in the order of numbers
  bool has_more = false;
};

/// Gets the records of TFRecord files one by one.
class RecordSurvey {
 public:
  RecordSurvey() = default;
  RecordSurvey(const RecordSurvey&) = delete;
  RecordSurvey& operator=(const RecordSurvey&) = delete;
  virtual ~RecordSurvey() = default;

  /// `is_example`: whether the record is a tf.train.Example or SequenceExample.
  virtual void take(std::span<const std::byte> record, bool is_example) = 0;
  /// None if no record was of interest.
  [[nodiscard]] virtual std::optional<MessageContents> result() const = 0;
};

/// The records of TFRecord files, and the features of those that are Examples.
struct TfrecordContents {
  /// A feature, in all records that have it.
  struct Feature {
    std::string name;
    std::string kind;          // "bytes", "float", "int64", "empty", or "mixed"
    bool is_sequence = false;  // a feature list of a SequenceExample
    std::uint64_t records = 0;
    ValueRange values;    // in each record; of a sequence, its steps
    ValueRange bytes;     // of the first value of kind "bytes"
    std::string content;  // the kind of image, by its first bytes: "JPEG", "PNG" …
  };
  std::uint64_t records = 0;
  std::uint64_t examples = 0;
  std::uint64_t sequence_examples = 0;
  ValueRange record_bytes;
  std::vector<Feature> features;  // by name
  bool has_more = false;
  std::optional<MessageContents> messages;  // of records that are not Examples, or of all
};

/// The objects of an HDF5 file, reached by any link.
struct Hdf5Contents {
  /// An object or a link.
  struct Object {
    std::string name;  // the path without its first slash
    std::string kind;  // "dataset", "group", "type", "soft link", "external link", or "unreadable"
    std::string target{};                // of a link
    std::string type{};                  // of a dataset's elements: "uint8", "string[12]" …
    std::vector<std::uint64_t> shape{};  // empty: a scalar
    std::string storage{};  // "contiguous", "chunked", "compact", "virtual", "external"
    std::vector<std::uint64_t> chunk{};
    std::vector<std::string> filters{};
    std::optional<std::uint64_t> offset{};  // of contiguous elements in the file
    std::uint64_t stored_bytes = 0;
    bool operator==(const Object&) const = default;
  };
  std::vector<Object> objects;  // by name
  bool has_more = false;
};

}  // namespace precache
