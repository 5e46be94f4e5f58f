// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace precache {

/// Has HDF5 files without a manifest scanned by processes of their own from now on, each for one
/// file; `program` is the `precache` command, which always does so itself.
///
/// The HDF5 library has memory faults on files that were made for that. In a process of its own it
/// can crash, hang or ask for all memory, and the file is refused as corrupt. A scan takes some
/// milliseconds longer; datasets with a manifest are not scanned. Nothing is forked, so it is safe
/// beside threads and CUDA. Without a call, or after one with an empty path, files are scanned in
/// the caller's process.
///
/// REQUIRES: no other thread opens or verifies shards meanwhile.
void isolate_hdf5(const std::filesystem::path& program);

}  // namespace precache
