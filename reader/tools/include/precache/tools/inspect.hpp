// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "precache/formats/contents.hpp"
#include "precache/formats/named_column.hpp"
#include "precache/formats/recipe.hpp"
#include "precache/formats/tensor_spec.hpp"
#include "precache/reader/dataset.hpp"
#include "precache/tools/verify.hpp"

namespace precache {

/// Progress that another thread may read.
struct InspectProgress {
  std::atomic<std::uint64_t> files_planned{0};  // to be scanned, for lack of a manifest
  std::atomic<std::uint64_t> files_done{0};
  std::atomic<std::uint64_t> reads_planned{0};  // of labels and payloads, after the files
  std::atomic<std::uint64_t> reads_done{0};
};

struct InspectOptions {
  std::optional<std::string> split;  // of dataset folders; none: all
  /// Read every file, label and value. Otherwise only a part, which takes seconds; the facts say
  /// which part.
  bool all = false;
  std::filesystem::path helper;         // see OpenOptions
  InspectProgress* progress = nullptr;  // updated if set
  /// Collects the fields of TFRecords. If not set, the fields of records that are not
  /// tf.train.Examples are listed by number. Use another one for each path.
  RecordSurvey* records = nullptr;
};

/// One split of a dataset with a manifest.
struct SplitFacts {
  std::string name;
  std::uint64_t samples = 0;
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::uint64_t skipped = 0;  // during the build
  std::uint64_t seed = 0;
  bool shuffled = true;
  std::vector<NamedColumn> columns;  // next to image, label and key
};

/// How the reader accesses samples.
struct AccessFacts {
  enum class Batches {
    kViews,     // neighbours are at one stride, so a batch needs no copy
    kGathered,  // samples can be viewed one by one
    kNone       // samples must be decoded, or cannot be read
  };
  Batches batches = Batches::kNone;
  std::string reason;
  std::optional<std::uint64_t> stride_bytes;     // if it is the same in all files
  std::optional<std::uint64_t> alignment_bytes;  // the power of two that divides all offsets
};

struct ClassCount {
  std::int64_t label = -1;
  std::string name;           // empty if the shards have no names
  std::uint64_t samples = 0;  // among the labels that were read
};

struct ClassFacts {
  std::uint64_t named = 0;
  std::uint64_t labels_read = 0;
  bool is_complete = false;  // true if all labels of all files were read
  std::uint64_t unlabelled = 0;
  std::vector<ClassCount> counts;  // by label; includes named classes without samples
  std::uint64_t uncounted = 0;     // samples whose labels are too many to be classes
};

struct ChannelFacts {
  double min = 0;
  double max = 0;
  double mean = 0;
  double std = 0;
  std::uint64_t non_finite = 0;          // not included in the other numbers
  std::vector<std::uint64_t> histogram;  // in equal steps from ValueFacts::low to high
};

struct ValueFacts {
  std::uint64_t samples_read = 0;
  bool is_complete = false;
  bool is_decoded = false;  // values of decoded images
  double low = 0;
  double high = 0;
  std::vector<ChannelFacts> channels;  // one for all if there are more than 16
};

/// Samples that are encoded images or other files.
struct EncodedFacts {
  std::uint64_t samples_read = 0;
  bool is_complete = false;
  std::map<std::string, std::uint64_t> kinds;  // "JPEG", "PNG" …; "other"
  ValueRange bytes;
  ValueRange width;  // of samples whose header was read; set by precache::convert
  ValueRange height;
  std::uint64_t undecodable = 0;
};

/// All facts about a path.
struct Inspection {
  enum class Kind { kDataset, kShards, kShard, kFile };

  std::filesystem::path path;
  Kind kind = Kind::kFile;  // a dataset has a manifest; a file is not a shard
  std::string format;       // "tar", "tfrecord", "hdf5", "mixed"; else empty
  bool has_manifest = false;
  std::string content;      // of a file that is not a shard: "JPEG", "PDF file" …
  std::string compression;  // "gzip" …, of whole files
  std::uint64_t files = 0;
  std::uint64_t files_read = 0;          // a file that a manifest describes counts as read
  std::uint64_t bytes = 0;               // of all files
  std::uint64_t bytes_read = 0;          // of files_read
  std::optional<std::uint64_t> samples;  // in files_read
  std::vector<SplitFacts> splits;
  std::optional<TensorSpec> spec;
  AccessFacts access;
  std::optional<StoredRecipe> recipe;
  std::optional<ClassFacts> classes;
  std::optional<ValueFacts> values;
  std::optional<EncodedFacts> encoded;
  std::vector<std::string> first_keys;
  std::optional<TarContents> tar;
  std::optional<TfrecordContents> tfrecord;
  std::optional<Hdf5Contents> hdf5;  // of the first file
  std::string contents_extent;       // the part that these contents describe; empty: all
  std::vector<std::string> unsupported_reasons;  // why the reader cannot use some of it
  std::vector<ShardFault> faults;                // damage
  /// The samples that can be read; their files stay open. Pictures are drawn from it.
  std::optional<Dataset> dataset;

  /// Bytes around the tensors in files_read; none if samples are not tensors.
  [[nodiscard]] std::optional<std::uint64_t> overhead_bytes() const;
};

/// Collects the facts about a path: a dataset folder, a shard of any origin, or a pattern.
///
/// A dataset is described from its manifest, at any size in milliseconds. Damaged and unsupported
/// files are described as far as possible. Throws IoError if the path does not exist or cannot be
/// read, InvalidArgument if nothing matches it, and the exceptions of Manifest::read.
[[nodiscard]] Inspection inspect(const std::filesystem::path& path, const InspectOptions& options);

/// The JSON that docs/formats/inspect.schema.json specifies.
[[nodiscard]] std::string to_json(const std::vector<Inspection>& inspections);

/// `count` numbers below `total`, in ascending order and well spread; all numbers if `total` is not
/// larger. The same arguments give the same numbers.
[[nodiscard]] std::vector<std::uint64_t> spread(std::uint64_t total, std::uint64_t count);

// Facts as text, for terminals and pages. Text from files is made harmless: UTF-8 without control
// characters.

/// The kind of the path: "precache dataset of tar shards" or "HDF5 shard".
[[nodiscard]] std::string headline(const Inspection& facts);

struct FactRow {
  std::string title;
  std::string text;
};

/// The most important facts first.
[[nodiscard]] std::vector<FactRow> fact_rows(const Inspection& facts);

struct FactTable {
  std::string title;
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;
  std::size_t left_columns = 1;  // columns of text; the others are numbers
  std::string note;              // about rows that are not shown
};

/// The facts that need more than a line, as tables of at most `most_rows` rows.
[[nodiscard]] std::vector<FactTable> fact_tables(const Inspection& facts, std::size_t most_rows);

/// "7", "3 to 1,200", or "-" for an empty range.
[[nodiscard]] std::string count_range(const ValueRange& range);

/// `text` if it has at most `columns` letters; else its beginning, ending in "...".
[[nodiscard]] std::string shortened(std::string_view text, std::size_t columns);

}  // namespace precache
