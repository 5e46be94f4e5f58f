// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "precache/formats/format.hpp"
#include "precache/formats/name_limits.hpp"

/// What all jobs that write shards have in common: build, reformat and pack.
namespace precache {

/// What a job that reads images is asked.
struct ImageJobOptions {
  /// A folder of images, a shard of them, a folder or a pattern of shards, or `-` for standard
  /// input.
  std::filesystem::path source;
  std::filesystem::path out;
  Format format = Format::kTar;
  std::string split = "train";
  /// "folder", which means what is next to the samples where they lie in shards, "none" or the path
  /// of a CSV file.
  std::string labels = "folder";
  /// Where in a shard image and label are: feature, dataset or extension; empty: guessed.
  std::string image_key;
  std::string label_key;
  /// For TFRecords of other messages than tf.train.Example: a FileDescriptorSet as protoc writes
  /// it, with imports, and the full name of the message. The keys are paths of fields then
  /// ("frame.images.image"); each element of a repeated field on the image's path is a sample.
  std::filesystem::path proto;
  std::string message;
  /// A file of class names, one a line, or a dataset.json; empty: from the source.
  std::filesystem::path classes;
  std::uint64_t shard_size_bytes = std::uint64_t{512} << 20;
  /// 0: by shard size.
  std::uint64_t shard_count = 0;
  /// Replaces what `out` holds of the split. Not part of a dataset's identity.
  bool overwrite = false;
  /// The `precache` command, which reads HDF5 files in a process of its own, as OpenOptions has it.
  /// Not part of a dataset's identity.
  std::filesystem::path helper;
};

enum class JobStatus {
  kComplete,         // the manifest was written
  kAlreadyComplete,  // an equal job had finished before: nothing was done
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

struct SkippedSample {
  std::string path;
  std::string stage;
  std::string reason;
};

/// What a job would do with one split.
struct SplitEstimate {
  std::string name;
  std::uint64_t samples = 0;
  std::uint64_t shards = 0;
  std::uint64_t smallest_shard_samples = 0;
  std::uint64_t largest_shard_samples = 0;
};

/// What a job would do.
struct JobEstimate {
  std::vector<SplitEstimate> splits;
  std::uint64_t samples = 0;
  std::uint64_t shards = 0;
  std::vector<std::string> classes;
  std::optional<LabelRange> labels;  // none: no sample has one
  std::uint64_t source_bytes = 0;
  std::uint64_t bytes_needed = 0;    // for the shards and bytes_unpacked
  std::uint64_t bytes_unpacked = 0;  // of copies that are there until the job is finished
  std::uint64_t bytes_free = 0;
};

/// What a job has done.
struct JobReport {
  JobStatus status = JobStatus::kComplete;
  SourceComparison compared = SourceComparison::kNames;  // of kAlreadyComplete
  std::uint64_t samples = 0;                             // in the shards that are complete
  std::uint64_t bytes = 0;                               // of those shards
  std::uint64_t shards_done = 0;                         // of this part, earlier runs included
  std::uint64_t shards_resumed = 0;    // of those, found complete when this run began
  std::uint64_t shards_planned = 0;    // for this part
  std::uint64_t converted = 0;         // samples written by this run
  std::uint64_t damaged = 0;           // samples in the shards that a decoder took with a warning
  std::uint64_t skipped_count = 0;     // rejected samples of this part, earlier runs included
  std::vector<SkippedSample> skipped;  // the same with their reasons, but for kAlreadyComplete
};

/// Watches a running job. Counters may be read from any thread meanwhile.
struct JobProgress {
  std::atomic<std::uint64_t> samples_planned{0};  // for this run
  std::atomic<std::uint64_t> samples_done{0};     // written or rejected
  std::atomic<std::uint64_t> samples_skipped{0};
  std::atomic<std::uint64_t> bytes_written{0};
  std::atomic<std::uint64_t> bytes_unpacked{0};  // of compressed shards and of a stream, at first
  std::atomic<bool> stop{false};                 // set it to end the job tidily
};

}  // namespace precache
