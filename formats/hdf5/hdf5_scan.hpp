// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "formats/shard/sample_keys.hpp"
#include "formats/shard/shard_index.hpp"

namespace precache::hdf5 {

/// Reads where every row of an HDF5 file's image dataset lies, ours or another's.
///
/// The dataset is `/images`, or one of other usual names, or the only one of three or four axes.
/// The library reads `file`, not the one at `path`, and follows no link to another. Throws
/// CorruptData where it cannot, and Unsupported where rows do not lie in the file as they are in
/// memory: filters, parts of rows in several chunks, big-endian numbers, other files. Throws
/// InvalidArgument if the file does not have what `keys` names.
[[nodiscard]] ShardIndex scan(std::span<const std::byte> file, const std::filesystem::path& path,
                              const SampleKeys& keys = {});

}  // namespace precache::hdf5
