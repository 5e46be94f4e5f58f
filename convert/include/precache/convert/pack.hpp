// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "precache/convert/job.hpp"

namespace precache {

struct PackOptions : ImageJobOptions {
  std::optional<std::uint64_t> seed;  // shuffles; none: the order is kept
  /// The extension of all images in a tar; empty: "jpg" or "png", by content.
  std::string image_name;
};

using PackEstimate = JobEstimate;  // bytes_needed is an estimate: samples may be skipped

struct PackReport : JobReport {
  PackEstimate estimate;
};

/// Lists the source and plans, writing nothing. Throws as pack() does.
[[nodiscard]] PackEstimate estimate_pack(const PackOptions& options);

/// Packs image files unchanged into shards, for training that decodes and augments them; continues
/// where an earlier, equal call stopped.
///
/// Nothing is decoded: a file that does not begin like a JPEG or PNG is skipped, and damage after
/// the first bytes is not noticed. Records differ in size, so there is no dataset.json:
/// encoded.json lists the complete splits, classes.txt the names of the classes. Runs in the
/// caller's TBB arena. Throws InvalidArgument, IoError, CorruptData and Unsupported.
[[nodiscard]] PackReport pack(const PackOptions& options, JobProgress& progress);

}  // namespace precache
