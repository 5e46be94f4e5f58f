// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>

#include "formats/shard_index.hpp"

// Scanning in a process of its own: `precache scan-hdf5 PATH` writes a message to a pipe.
namespace precache::hdf5 {

inline constexpr const char* kScanCommand = "scan-hdf5";

/// The program that isolate_hdf5() named; empty if there is none.
[[nodiscard]] const std::filesystem::path& scan_program();

/// Has `program` scan the file at `path`, of `bytes` bytes.
///
/// Throws what scan() would throw; CorruptData if the process dies of the file, and IoError if it
/// cannot be started. Any number of threads may call it at once.
[[nodiscard]] ShardIndex scan_apart(const std::filesystem::path& program,
                                    const std::filesystem::path& path, std::uint64_t bytes);

/// What the process does: scans, writes the message to standard output, and ends, without the
/// library's last words.
[[noreturn]] void answer_scan(const std::filesystem::path& path);

}  // namespace precache::hdf5
