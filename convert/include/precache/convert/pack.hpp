// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "precache/convert/build.hpp"

namespace precache {

struct PackOptions {
  /// As that of build: a folder of images, a shard of them, a folder or a pattern of shards, or `-`
  /// for standard input.
  std::filesystem::path source;
  std::filesystem::path out;
  std::string format = "tar";
  std::string split = "train";
  /// As those of build.
  std::string labels = "folder";
  std::string image_key;
  std::string label_key;
  std::filesystem::path classes;
  std::uint64_t shard_size_bytes = std::uint64_t{512} << 20;
  std::uint64_t shards = 0;           // 0: by shard size
  std::optional<std::uint64_t> seed;  // shuffles; none: the order is kept
  /// The extension of all images in a tar; empty: "jpg" or "png", by what each is.
  std::string image_name;

  // Below: not part of the result's identity.
  bool overwrite = false;
  std::filesystem::path helper;  // as OpenOptions has it
};

struct PackEstimate {
  std::uint64_t samples = 0;
  std::uint64_t classes = 0;
  std::optional<LabelRange> labels;
  std::uint64_t source_bytes = 0;  // of the images
  std::uint64_t shards = 0;
  std::uint64_t smallest_shard_samples = 0;
  std::uint64_t largest_shard_samples = 0;
  std::uint64_t bytes_needed = 0;    // about, for the shards and bytes_unpacked
  std::uint64_t bytes_unpacked = 0;  // of copies that are there until all is done
  std::uint64_t bytes_free = 0;
};

struct PackReport {
  JobStatus status = JobStatus::kComplete;  // or kAlreadyComplete, kInterrupted
  PackEstimate preview;
  SourceComparison compared = SourceComparison::kNames;  // of kAlreadyComplete
  std::uint64_t samples = 0;                             // in the shards that are complete
  std::uint64_t bytes = 0;                               // of those shards
  std::uint64_t shards_done = 0;                         // earlier runs included
  std::uint64_t shards_resumed = 0;  // of those, found complete when this run began
  std::uint64_t converted = 0;       // images repacked by this run
  std::vector<SkippedSample> skipped;
};

/// Lists the source and plans, writing nothing. Throws as pack() does.
[[nodiscard]] PackEstimate estimate_pack(const PackOptions& options);

/// Packs image files into shards as they are, for those who decode and distort them while training;
/// continues where an earlier, equal call stopped.
///
/// Nothing is decoded: what is neither JPEG nor PNG by its first bytes is skipped, what is broken
/// behind them stays so. There is no dataset.json, as records differ in size: OUT/encoded.json says
/// which splits are complete, OUT/classes.txt has the names of the classes. Runs in the caller's
/// TBB arena. Throws InvalidArgument, IoError, CorruptData and Unsupported.
[[nodiscard]] PackReport pack(const PackOptions& options, JobProgress& progress);

}  // namespace precache
