// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>

#include "formats/hdf5/helper/image_rows.hpp"
#include "formats/shard/shard_index.hpp"
#include "precache/formats/contents.hpp"

// A separate process, `precache hdf5-helper`, reads third-party HDF5 files. The HDF5 library has
// memory errors on hostile files; in the helper it can crash, hang or ask for all memory, and the
// file is refused as corrupt. Nothing is forked, so this is safe next to threads and CUDA.
//
// In all functions, `helper` is the `precache` command; empty: the one on PATH. They throw the
// error that the helper reports, CorruptData if the file makes it crash, IoError if it cannot be
// started, and Unsupported if there is no command or it cannot read HDF5. Any number of threads may
// call them at once.
namespace precache::hdf5 {

/// Finds the samples of the file at `path`, which has `bytes` bytes.
[[nodiscard]] ShardIndex scan_in_helper(const std::filesystem::path& helper,
                                        const std::filesystem::path& path, std::uint64_t bytes,
                                        const SampleKeys& keys = {});

/// Finds the images of the file and their labels. Messages call the file `shown_as`.
[[nodiscard]] ImageRows find_images_in_helper(const std::filesystem::path& helper,
                                              const std::filesystem::path& path,
                                              std::uint64_t bytes, const SampleKeys& keys,
                                              const std::filesystem::path& shown_as);

/// Lists what is in the file.
[[nodiscard]] Hdf5Contents survey_in_helper(const std::filesystem::path& helper,
                                            const std::filesystem::path& path, std::uint64_t bytes);

/// Reads all images of the file and returns their number; 0 if `stop` is set before the end.
[[nodiscard]] std::uint64_t check_images_in_helper(const std::filesystem::path& helper,
                                                   const std::filesystem::path& path,
                                                   std::uint64_t bytes,
                                                   const std::atomic<bool>& stop);

}  // namespace precache::hdf5
