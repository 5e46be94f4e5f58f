// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>

#include "formats/hdf5/helper/image_rows.hpp"
#include "formats/shard/sample_keys.hpp"
#include "formats/shard/shard_index.hpp"
#include "precache/formats/contents.hpp"

// Third-party HDF5 files are read by a process of their own, `precache hdf5-helper`. The HDF5
// library has memory faults on files that were made for that: there it can crash, hang or ask for
// all memory, and the file is refused as corrupt. Nothing is forked, so it is safe next to threads
// and CUDA.
//
// In all functions, `helper` is the `precache` command; empty: the one on PATH. They throw the
// error that the helper reports, CorruptData if it dies of the file, IoError if it cannot be
// started, and Unsupported if there is no command or it cannot read HDF5. Any number of threads may
// call them at once.
namespace precache::hdf5 {

/// Where the samples of the file at `path`, of `bytes` bytes, lie.
[[nodiscard]] ShardIndex scan_in_helper(const std::filesystem::path& helper,
                                        const std::filesystem::path& path, std::uint64_t bytes,
                                        const SampleKeys& keys = {});

/// The images of the file and their labels. Messages call the file `shown_as`.
[[nodiscard]] ImageRows find_images_in_helper(const std::filesystem::path& helper,
                                              const std::filesystem::path& path,
                                              std::uint64_t bytes, const SampleKeys& keys,
                                              const std::filesystem::path& shown_as);

/// Lists what is in the file.
[[nodiscard]] Hdf5Contents survey_in_helper(const std::filesystem::path& helper,
                                            const std::filesystem::path& path, std::uint64_t bytes);

/// Reads all images of the file, and returns how many there are; 0 when `stop` is set before.
[[nodiscard]] std::uint64_t check_images_in_helper(const std::filesystem::path& helper,
                                                   const std::filesystem::path& path,
                                                   std::uint64_t bytes,
                                                   const std::atomic<bool>& stop);

}  // namespace precache::hdf5
