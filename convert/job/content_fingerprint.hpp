// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "precache/convert/job.hpp"

namespace precache {

/// What the bytes of one sample, whose CRC-32C this is, add to the fingerprint of a source's
/// content. The sum does not depend on the order in which samples are read, nor on shards or parts.
[[nodiscard]] std::uint64_t content_term(std::uint64_t sample, std::uint32_t crc);

/// As manifests have it: "sum64:" and sixteen digits.
[[nodiscard]] std::string content_fingerprint(std::uint64_t sum);

/// Gives the CRC-32C of a sample's bytes; of its own for each thread.
using SampleCrc = std::function<std::uint32_t(std::uint64_t sample)>;

/// A finished split and the source that it is compared with.
struct ContentCheck {
  std::filesystem::path first_shard;  // of the split
  std::string fingerprint;            // of the content, by its manifest; may be empty
  std::string plan;                   // identity of what would be made now
  std::uint64_t samples = 0;
  bool has_times = true;  // false for a source that came through a pipe
  std::function<SampleCrc()> reader;
};

/// Whether a source is what it was when a split was made of it, although names, sizes and labels of
/// its samples are the same: by modification times where they were remembered, else by reading all
/// samples. Throws InvalidArgument if it is not, and UnpackingStopped if `progress` asks to stop.
[[nodiscard]] SourceComparison compare_content(const ContentCheck& check, JobProgress& progress);

/// Remembers at a split's first shard which plan it was made by, times of the source included. That
/// is an extended attribute and not in the manifest, which equal images of other times have alike.
/// Does nothing where the file system has no such attributes.
void remember_plan(const std::filesystem::path& first_shard, const std::string& plan);

}  // namespace precache
