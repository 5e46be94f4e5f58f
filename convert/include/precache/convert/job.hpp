// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "precache/formats/format.hpp"
#include "precache/formats/name_limits.hpp"

/// The common parts of all jobs that write shards: build, reformat and pack.
namespace precache {

/// The options of a job that reads images.
struct ImageJobOptions {
  /// A folder of images, a shard of them, a folder or a pattern of shards, or `-` for standard
  /// input.
  std::filesystem::path source;
  std::filesystem::path out;
  Format format = Format::kTar;
  std::string split = "train";
  /// "folder" (for shards: the labels next to the samples), "none" or the path of a CSV file.
  std::string labels = "folder";
  /// The columns of that CSV file by the names in its first row, where these are not `path` and
  /// `label` or there are further columns. If one of them is empty, it has its usual name.
  std::string path_column;
  std::string label_column;
  /// For a folder of images without a folder per class: a regular expression (ECMAScript) that is
  /// searched in the path below `source`; its first group is the label.
  std::string label_regex;
  /// The feature, dataset or extension of image and label in shards; empty: guessed.
  std::string image_key;
  std::string label_key;
  /// For TFRecords of other messages than tf.train.Example: a FileDescriptorSet as protoc writes
  /// it, with imports, and the full name of the message. The keys are then paths of fields
  /// ("frame.images.image"); each element of a repeated field on the image's path is a sample.
  std::filesystem::path proto;
  std::string message;
  /// A file of class names, one per line, or a dataset.json; empty: from the source.
  std::filesystem::path classes;
  std::uint64_t shard_size_bytes = std::uint64_t{512} << 20;
  /// 0: by shard size.
  std::uint64_t shard_count = 0;
  /// Replaces the split if `out` holds it. Not part of a dataset's identity.
  bool overwrite = false;
  /// The `precache` command, which reads HDF5 files in a separate process, as in OpenOptions. Not
  /// part of a dataset's identity.
  std::filesystem::path helper;
};

/// The work of one run. A job of one run does all steps; on several machines one run prepares, each
/// part makes its shards, and one run finishes.
enum class JobStep {
  kWhole,
  kPrepare,  // list the source and freeze the plan
  kPart,     // make every `part_count`-th shard; prepares if no run has
  kFinish,   // write the manifest
};

/// The share of a step that one of several runs does: number `index` of `count`, from 0; all of it
/// if `count` is 0.
struct Share {
  std::uint64_t index = 0;
  std::uint64_t count = 0;
};

enum class JobStatus {
  kComplete,         // the manifest was written
  kAlreadyComplete,  // an equal job has finished before; nothing was done
  kPrepared,         // the plan, or this share of the listing, is written
  kPartDone,         // all shards of this part are written
  kTooManyBad,       // more samples were rejected than allowed
  kInterrupted,      // the caller asked to stop
};

/// How a finished split was found to be the one that the same request would make again.
enum class SourceComparison {
  kNames,     // names, sizes and labels of the samples: nothing else is known about the source
  kTimes,     // the same, and modification times
  kContent,   // the same, and the content of all samples, which was read
  kManifest,  // the manifest of the shards that were converted
  kNothing,   // the source was not looked at: a late part
};

/// Why a sample was skipped: its bytes cannot be decoded, or it is larger than a limit.
enum class RejectionStage { kDecode, kLimit, kMask };

/// "decode", "limit" or "mask".
[[nodiscard]] constexpr std::string_view name(RejectionStage stage) {
  return stage == RejectionStage::kDecode  ? "decode"
         : stage == RejectionStage::kLimit ? "limit"
                                           : "mask";
}

struct SkippedSample {
  std::string path;
  RejectionStage stage = RejectionStage::kDecode;
  std::string reason;
  std::string split{};  // in the report of a job
};

/// The plan for one split.
struct SplitEstimate {
  std::string name;
  std::uint64_t samples = 0;
  std::uint64_t shards = 0;
  std::uint64_t smallest_shard_samples = 0;
  std::uint64_t largest_shard_samples = 0;
};

/// The plan of a job.
struct JobEstimate {
  std::vector<SplitEstimate> splits;
  std::uint64_t samples = 0;
  std::uint64_t shards = 0;
  std::vector<std::string> classes;
  std::optional<LabelRange> labels;  // none: no sample has one
  std::uint64_t source_bytes = 0;
  std::uint64_t bytes_needed = 0;    // for the shards and bytes_unpacked
  std::uint64_t bytes_unpacked = 0;  // by copies that are kept until the job is finished
  std::uint64_t bytes_free = 0;
  /// Values next to the images of the source that convert and pack do not keep; of convert, those
  /// of the first sample.
  std::vector<std::string> dropped_columns;
};

/// The outcome of a job for one split; of its part, as in JobReport.
struct SplitReport {
  std::string name;
  std::uint64_t samples = 0;
  std::uint64_t bytes = 0;
  std::uint64_t shards_done = 0;
  std::uint64_t skipped_count = 0;
};

/// The outcome of a job.
struct JobReport {
  std::vector<SplitReport> splits;
  JobStatus status = JobStatus::kComplete;
  SourceComparison compared = SourceComparison::kNames;  // of kAlreadyComplete
  bool listed = false;                                   // this run has listed the source
  std::uint64_t samples = 0;                             // in the shards that are complete
  std::uint64_t bytes = 0;                               // of those shards
  std::uint64_t shards_done = 0;                         // of this part, earlier runs included
  std::uint64_t shards_resumed = 0;                      // of those, complete before this run
  std::uint64_t shards_planned = 0;                      // for this part
  std::uint64_t converted = 0;                           // samples written by this run
  std::uint64_t damaged = 0;        // samples in the shards that a decoder warned about
  std::uint64_t turned = 0;         // samples in the shards that EXIF orientations turned
  std::uint64_t skipped_count = 0;  // rejected samples of this part, earlier runs included
  /// The same with their reasons: none for kAlreadyComplete, the first if the run only finishes.
  std::vector<SkippedSample> skipped;
};

/// The progress of a running job. Any thread may read the counters.
struct JobProgress {
  std::atomic<std::uint64_t> samples_planned{0};  // for this run
  std::atomic<std::uint64_t> samples_done{0};     // written or rejected
  std::atomic<std::uint64_t> samples_skipped{0};
  std::atomic<std::uint64_t> bytes_written{0};
  std::atomic<std::uint64_t> bytes_unpacked{0};  // of compressed shards and of a stream, first
  std::atomic<bool> stop{false};                 // set it to interrupt the job; it can be continued
};

}  // namespace precache
