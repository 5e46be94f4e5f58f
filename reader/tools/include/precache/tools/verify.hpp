// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace precache {

/// The part to verify, and the resources to use.
struct VerifyOptions {
  std::optional<std::string> split;  // of dataset folders; none: all
  unsigned threads = 0;              // 0: all that the process may use
  std::filesystem::path helper{};    // see OpenOptions
};

/// Progress that another thread may read; it may set `stop` to end the work.
struct VerifyProgress {
  std::atomic<std::uint64_t> bytes_planned{0};
  std::atomic<std::uint64_t> bytes_done{0};
  std::atomic<bool> stop{false};
};

/// One fault of a file.
struct ShardFault {
  std::filesystem::path file;
  std::optional<std::uint64_t> record;  // if known
  std::optional<std::uint64_t> offset;  // none if unknown, or for the whole file
  std::string reason;
  bool operator==(const ShardFault&) const = default;
};

/// The result of verify().
struct VerifyReport {
  std::uint64_t files = 0;
  std::uint64_t known_files = 0;  // of these, the ones with checksums in a manifest
  std::uint64_t samples = 0;
  std::uint64_t bytes = 0;
  std::vector<ShardFault> faults;       // in the order of the files
  std::vector<ShardFault> unsupported;  // content that cannot be checked
  bool interrupted = false;
};

/// Reads shards from end to end and checks them.
///
/// With a manifest: that the manifest was not changed, that each shard exists, its size, the
/// CRC-32C of all its bytes, and the positions of its records. Without one: the framing, checksums
/// of tar headers, CRCs of TFRecords, the structure of HDF5. Takes the same paths as Dataset::open.
///
/// Throws IoError if a path does not exist or cannot be read, and if a dataset is replaced
/// meanwhile; InvalidArgument if nothing matches a path, and for a folder with an unfinished split
/// unless `split` names another one; and the exceptions of Manifest::read.
[[nodiscard]] VerifyReport verify(const std::vector<std::filesystem::path>& paths,
                                  const VerifyOptions& options, VerifyProgress& progress);

}  // namespace precache
