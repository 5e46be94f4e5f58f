// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "formats/shard/sample_keys.hpp"
#include "formats/shard/shard_index.hpp"

namespace precache::tar {

/// Reads where every sample of a tar archive lies, ours or another's, grouped as webdataset does:
/// consecutive entries whose paths agree up to the first dot of the base name are one sample.
/// Entries that are images one and all, numbered behind such a dot, are samples of their own.
///
/// A sample's payload is the array of its `npy`, else its image, else the first field that is no
/// label; its label is the number in `cls`, else `label` or `cls` of its `json`. Throws CorruptData
/// and, for samples in sparse entries, Unsupported.
[[nodiscard]] ShardIndex scan(std::span<const std::byte> file, const std::filesystem::path& path,
                              const std::optional<TensorSpec>& given, const SampleKeys& keys = {});

}  // namespace precache::tar
