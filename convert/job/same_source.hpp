// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "convert/job/plan_file.hpp"
#include "convert/source/source.hpp"
#include "formats/os/file.hpp"
#include "precache/convert/job.hpp"

namespace precache {

/// The contribution of one sample, by the CRC-32C of its bytes, to the fingerprint of a source's
/// content. The sum does not depend on the order in which samples are read, nor on shards or parts.
[[nodiscard]] std::uint64_t content_term(std::uint64_t sample, std::uint32_t crc);

/// As manifests have it: "sum64:" and sixteen digits.
[[nodiscard]] std::string content_fingerprint(std::uint64_t sum);

/// The CRC-32C of the bytes from `begin` to `end`. Throws IoError.
[[nodiscard]] std::uint32_t crc_of(const File& file, std::uint64_t begin, std::uint64_t end);

/// Gives the CRC-32C of a sample's bytes. Each thread has its own.
using SampleCrc = std::function<std::uint32_t(std::uint64_t sample)>;

/// A finished split and the source that it is compared with.
struct ContentCheck {
  std::filesystem::path first_shard;  // of the split
  std::string fingerprint;            // of the content, by its manifest; may be empty
  std::string plan;                   // identity of the plan that would be made now
  std::uint64_t samples = 0;
  bool has_times = true;  // false for a source that came through a pipe
  std::function<SampleCrc()> reader;
};

/// Compares a source whose names, sizes and labels are unchanged with the one that a split was made
/// from: by modification times if they were remembered, else by reading all samples. Throws
/// InvalidArgument if it has changed, and UnpackingStopped if `progress` asks to stop.
[[nodiscard]] SourceComparison compare_content(const ContentCheck& check, JobProgress& progress);

/// Remembers at a split's first shard which plan it was made by, times of the source included. It
/// is an extended attribute and not in the manifest, because equal images with other times must
/// give the same manifest. Does nothing if the file system has no such attributes.
void remember_plan(const std::filesystem::path& first_shard, const std::string& plan);

/// How much of a source that was listed at another path is compared with its listing.
enum class SourceCheck {
  kAll,   // its shards, or a sample of its files
  kNames  // none: readers of samples compare each file
};

/// Finds the files of a source that was listed at `listed_root` below `root`, and sets the paths of
/// the shards to where they are now. A stream was copied and is not checked again. At the same path
/// nothing is compared but shards, because readers compare each file. Throws InvalidArgument if a
/// file differs, IoError if a copy of the job does.
void check_same_source(Source& source, const std::filesystem::path& root,
                       const std::string& listed_root, const PlanFile& plan, SourceCheck check);

}  // namespace precache
