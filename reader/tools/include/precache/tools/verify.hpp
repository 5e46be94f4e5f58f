// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace precache {

struct VerifyOptions {
  std::optional<std::string> split;  // of dataset folders; none: all
  unsigned threads = 0;              // 0: what the process may use
  std::filesystem::path helper{};    // as OpenOptions has it
};

/// What another thread may look at, and how it may end the work.
struct VerifyProgress {
  std::atomic<std::uint64_t> bytes_planned{0};
  std::atomic<std::uint64_t> bytes_done{0};
  std::atomic<bool> stop{false};
};

/// Something that is wrong with a file.
struct ShardFault {
  std::filesystem::path file;
  std::optional<std::uint64_t> record;  // where that is known
  std::optional<std::uint64_t> offset;  // none where nothing tells, or the whole file is meant
  std::string reason;
  bool operator==(const ShardFault&) const = default;
};

struct VerifyReport {
  std::uint64_t files = 0;
  std::uint64_t known_files = 0;  // of them, by a manifest's checksums
  std::uint64_t samples = 0;
  std::uint64_t bytes = 0;
  std::vector<ShardFault> faults;       // in the order of the files
  std::vector<ShardFault> unsupported;  // what cannot be read, whole or not
  bool interrupted = false;
};

/// Reads shards from end to end and compares them with what they should be.
///
/// With a manifest: that it is as it was written, that a shard is there, its size, the CRC-32C of
/// all its bytes, and that its records lie where the manifest says. Without: its framing, checksums
/// of tar headers, CRCs of TFRecords, the structure of HDF5. Paths are what Dataset::open takes.
///
/// Throws IoError for a path that is not there or cannot be read, and for a dataset that is
/// replaced meanwhile; InvalidArgument for a path that names nothing, and for a folder in which a
/// split is not finished, unless another one is asked for; and what Manifest::read throws.
[[nodiscard]] VerifyReport verify(const std::vector<std::filesystem::path>& paths,
                                  const VerifyOptions& options, VerifyProgress& progress);

}  // namespace precache
