// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <filesystem>
#include <optional>

#include "formats/shard/sample_keys.hpp"
#include "formats/shard/shard_index.hpp"
#include "precache/formats/contents.hpp"

// Scanning in a process of its own: `precache scan-hdf5 [--contents|--check] [--image-key NAME]
// [--label-key NAME] [--without-labels] PATH` writes a message to a pipe.
namespace precache::hdf5 {

inline constexpr const char* kScanCommand = "scan-hdf5";
inline constexpr const char* kContentsOption = "--contents";
inline constexpr const char* kCheckOption = "--check";
inline constexpr const char* kImageKeyOption = "--image-key";
inline constexpr const char* kLabelKeyOption = "--label-key";
inline constexpr const char* kWithoutLabelsOption = "--without-labels";

/// The program that isolate_hdf5() named; empty if there is none.
[[nodiscard]] const std::filesystem::path& scan_program();

/// Has `program` scan the file at `path`, of `bytes` bytes.
///
/// Throws what scan() would throw; CorruptData if the process dies of the file, and IoError if it
/// cannot be started. Any number of threads may call it at once.
[[nodiscard]] ShardIndex scan_in_helper(const std::filesystem::path& program,
                                        const std::filesystem::path& path, std::uint64_t bytes,
                                        const SampleKeys& keys = {});

/// Has `program` list what is in the file. Throws as scan_in_helper() does.
[[nodiscard]] Hdf5Contents survey_in_helper(const std::filesystem::path& program,
                                            const std::filesystem::path& path, std::uint64_t bytes);

/// Has `program` read all images of the file, and returns how many there are. Throws as
/// scan_in_helper() and check_images() do. Gives up, and returns 0, when `stop` is set.
[[nodiscard]] std::uint64_t check_images_apart(const std::filesystem::path& program,
                                               const std::filesystem::path& path,
                                               std::uint64_t bytes, const std::atomic<bool>& stop);

enum class HelperRequest { kIndex, kContents, kCheck };
/// What the process does: scans, writes the message to standard output, and ends, without the
/// library's last words.
[[noreturn]] void serve_helper_request(const std::filesystem::path& path, HelperRequest question,
                                       const SampleKeys& keys);

}  // namespace precache::hdf5
