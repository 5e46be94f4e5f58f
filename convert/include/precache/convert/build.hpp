// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "precache/convert/recipe.hpp"
#include "precache/convert/sidecars.hpp"
#include "precache/formats/name_limits.hpp"
#include "precache/formats/usable_threads.hpp"

namespace precache {

/// The limit beyond which Pillow refuses an image as a decompression bomb.
inline constexpr std::uint64_t kDefaultMaxPixels = 178'956'970;

struct BuildOptions {
  /// A folder of images, a shard of them, a pattern of shards, or `-` for standard input.
  std::filesystem::path source;
  std::filesystem::path out;
  std::string format = "tar";
  Recipe recipe;
  std::string split = "train";
  /// "folder", which means what is beside the samples where they lie in shards, "none" or the path
  /// of a CSV file.
  std::string labels = "folder";
  /// Where in a shard image and label are: feature, dataset or extension; empty: guessed.
  std::string image_key;
  std::string label_key;
  /// A file of class names, one a line, or a dataset.json; empty: from the source.
  std::filesystem::path classes;
  std::uint64_t shard_size_bytes = std::uint64_t{512} << 20;
  /// 0: by shard size.
  std::uint64_t shards = 0;
  std::uint64_t seed = 0;
  bool shuffle = true;
  /// Keys of more than 96 bytes are cut, so that they fit every tar header without an extension.
  bool short_keys = false;
  std::uint64_t max_pixels = kDefaultMaxPixels;

  // Below: not part of a dataset's identity, may differ when a build is continued.
  bool fail_on_bad = false;
  double max_bad_percent = 1.0;
  bool overwrite = false;
  /// Only the shards whose number is `part_index` modulo `part_count`; 0: all, and the manifest.
  std::uint64_t part_index = 0;
  std::uint64_t part_count = 0;
  /// Only write the manifest, once all parts are there.
  bool finish = false;
  /// To write beside the shards of the split, when they are all there.
  std::vector<SidecarKind> indexes;
  /// The `precache` command, which reads HDF5 files in a process of its own, as OpenOptions has it.
  std::filesystem::path helper;
};

struct SkippedSample {
  std::string path;
  std::string stage;
  std::string reason;
};

/// What a build would do, for --dry-run.
struct BuildEstimate {
  std::uint64_t samples = 0;
  std::uint64_t source_bytes = 0;
  std::vector<std::string> classes;
  std::vector<std::string> empty_classes;
  std::optional<LabelRange> labels;  // none: no sample has one
  std::map<std::string, std::uint64_t> left_out;
  std::uint64_t shards = 0;
  std::uint64_t smallest_shard_samples = 0;
  std::uint64_t largest_shard_samples = 0;
  std::uint64_t tensor_bytes = 0;
  std::uint64_t record_bytes = 0;
  std::string pax_key;  // the longest, if tar records have pax headers because of such keys
  std::uint64_t bytes_needed = 0;    // for the shards and bytes_unpacked
  std::uint64_t bytes_unpacked = 0;  // of copies that are there until the build is finished
  std::uint64_t bytes_free = 0;
};

enum class JobStatus {
  kComplete,         // dataset.json was written
  kAlreadyComplete,  // an equal build had finished before: nothing was done
  kPartDone,         // all shards of this part are written
  kTooManyBad,       // more samples were rejected than allowed
  kInterrupted,      // the caller asked to stop
};

/// How a finished split was found to be what the same request would make once more.
enum class SourceComparison {
  kNames,     // names, sizes and labels of the samples: nothing else is known of the source
  kTimes,     // these, and modification times
  kContent,   // these, and the content of all samples, which was read
  kManifest,  // the manifest of the shards that were converted
};

struct BuildReport {
  JobStatus status = JobStatus::kComplete;
  BuildEstimate preview;
  SourceComparison compared = SourceComparison::kNames;  // of kAlreadyComplete
  std::uint64_t samples = 0;                             // in the shards that are complete
  std::uint64_t bytes = 0;                               // of those shards
  std::uint64_t shards_done = 0;                         // of this part, earlier runs included
  std::uint64_t shards_resumed = 0;    // of those, found complete when this run began
  std::uint64_t shards_planned = 0;    // for this part
  std::uint64_t converted = 0;         // samples converted by this run
  std::uint64_t damaged = 0;           // samples in the shards that a decoder took with a warning
  std::uint64_t skipped_count = 0;     // rejected samples of this part, earlier runs included
  std::vector<SkippedSample> skipped;  // the same with their reasons, but for kAlreadyComplete
  SidecarReport indexes;
};

/// Watches a running build. Counters may be read from any thread while build() runs.
struct JobProgress {
  std::atomic<std::uint64_t> samples_planned{0};  // for this run
  std::atomic<std::uint64_t> samples_done{0};     // converted or rejected
  std::atomic<std::uint64_t> samples_skipped{0};
  std::atomic<std::uint64_t> bytes_written{0};
  std::atomic<std::uint64_t> bytes_unpacked{0};  // of compressed shards and of a stream, at first
  std::atomic<bool> stop{false};                 // set it to end the build tidily
};

/// Lists the source and plans, writing nothing, but for plain copies of shards that are compressed:
/// they lie in the system's folder for temporary files meanwhile. Throws as build() does.
[[nodiscard]] BuildEstimate estimate_build(const BuildOptions& options);

/// Turns the images of a source into shards; continues where an earlier, equal call stopped.
///
/// Runs in the caller's TBB arena. Throws InvalidArgument for requests that make no sense or would
/// touch another dataset, IoError when the system refuses, CorruptData and Unsupported for shards
/// as a source; what is complete by then stays, and the next equal call goes on from there.
[[nodiscard]] BuildReport build(const BuildOptions& options, JobProgress& progress);

}  // namespace precache
