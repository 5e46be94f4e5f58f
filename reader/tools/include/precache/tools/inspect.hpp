// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "precache/formats/contents.hpp"
#include "precache/formats/recipe.hpp"
#include "precache/formats/tensor_spec.hpp"
#include "precache/reader/dataset.hpp"
#include "precache/tools/verify.hpp"

namespace precache {

/// What another thread may look at.
struct InspectProgress {
  std::atomic<std::uint64_t> files_planned{0};  // to be scanned, as no manifest describes them
  std::atomic<std::uint64_t> files_done{0};
  std::atomic<std::uint64_t> reads_planned{0};  // of labels and payloads, when files are done
  std::atomic<std::uint64_t> reads_done{0};
};

struct InspectOptions {
  std::optional<std::string> split;  // of dataset folders; none: all
  /// Look at every file, label and value, however long it takes. Else at a part that takes moments,
  /// and the facts say at which.
  bool all = false;
  std::size_t first_keys = 5;
  std::filesystem::path helper;         // as OpenOptions has it
  InspectProgress* progress = nullptr;  // is told, if there is one
  /// Is shown all TFRecords, and says what fields they have. If there is none, the fields of
  /// records that are not tf.train.Examples are listed by number. Use one for one path.
  RecordSurvey* records = nullptr;
};

struct SplitFacts {
  std::string name;
  std::uint64_t samples = 0;
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::uint64_t skipped = 0;  // when it was built
  std::uint64_t seed = 0;
  bool shuffled = true;
};

/// How the reader gets at samples.
struct AccessFacts {
  enum class Batches {
    kViews,     // neighbours lie at one stride: no copy
    kGathered,  // samples can be viewed one by one
    kNone       // they have to be decoded, or cannot be read
  };
  Batches batches = Batches::kNone;
  std::string reason;
  std::optional<std::uint64_t> stride_bytes;     // if one holds for all files
  std::optional<std::uint64_t> alignment_bytes;  // the power of two that divides all offsets
};

struct ClassCount {
  std::int64_t label = -1;
  std::string name;           // empty where the shards do not tell
  std::uint64_t samples = 0;  // among the labels that were read
};

struct ClassFacts {
  std::uint64_t named = 0;
  std::uint64_t labels_read = 0;
  bool is_complete = false;  // all labels of all files were read
  std::uint64_t unlabelled = 0;
  std::vector<ClassCount> counts;  // by label; named classes without samples too
  std::uint64_t uncounted = 0;     // with labels too many to be classes
};

struct ChannelFacts {
  double min = 0;
  double max = 0;
  double mean = 0;
  double std = 0;
  std::uint64_t non_finite = 0;          // left out of all else
  std::vector<std::uint64_t> histogram;  // in equal steps from ValueFacts::low to high
};

struct ValueFacts {
  std::uint64_t samples_read = 0;
  bool is_complete = false;
  bool is_decoded = false;  // of encoded images after decoding
  double low = 0;
  double high = 0;
  std::vector<ChannelFacts> channels;  // one for all if there are more than 16
};

/// Of samples that are files.
struct EncodedFacts {
  std::uint64_t samples_read = 0;
  bool is_complete = false;
  std::map<std::string, std::uint64_t> kinds;  // "JPEG", "PNG" …; "other"
  ValueRange bytes;
  ValueRange width;  // of those whose header was read; by whoever can decode
  ValueRange height;
  std::uint64_t undecodable = 0;
};

/// What is known of a path.
struct Inspection {
  enum class Kind { kDataset, kShards, kShard, kFile };

  std::filesystem::path path;
  Kind kind = Kind::kFile;  // a dataset has a manifest; a file is no shard
  std::string format;       // "tar", "tfrecord", "hdf5", "mixed"; empty: none of them
  bool has_manifest = false;
  std::string content;      // what a file that is no shard seems to be: "JPEG", "PDF file" …
  std::string compression;  // "gzip" …, of the files as a whole
  std::uint64_t files = 0;
  std::uint64_t files_read = 0;          // the manifest's word counts as reading
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
  std::optional<Hdf5Contents> hdf5;              // of the first file
  std::string contents_extent;                   // the part that the above tells of; empty: all
  std::vector<std::string> unsupported_reasons;  // what keeps the reader from some of it
  std::vector<ShardFault> faults;                // damage
  /// The samples that can be read, of files that stay open; pictures are drawn from it.
  std::optional<Dataset> dataset;

  /// Bytes beside the tensors in files_read; none if samples are no tensors.
  [[nodiscard]] std::optional<std::uint64_t> overhead_bytes() const;
};

/// Finds out what a path holds: a dataset folder, a shard of whatever origin, or a pattern.
///
/// A dataset is described by its manifest, in moments. What is broken, or cannot be read by us, is
/// described as far as it can be. Throws IoError for a path that is not there or cannot be read,
/// InvalidArgument for one that names nothing, and what Manifest::read throws.
[[nodiscard]] Inspection inspect(const std::filesystem::path& path, const InspectOptions& options);

/// As docs/formats/inspect.schema.json specifies.
[[nodiscard]] std::string to_json(const std::vector<Inspection>& inspections);

/// Some numbers below `total`, in rising order and well spread; all if there are no more than
/// `count`. Equal arguments give equal numbers.
[[nodiscard]] std::vector<std::uint64_t> spread(std::uint64_t total, std::uint64_t count);

}  // namespace precache
