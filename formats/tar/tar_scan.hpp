// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "formats/shard/sample_keys.hpp"
#include "formats/shard/shard_index.hpp"

namespace precache::tar {

/// The index of all samples that SampleFinder finds in a tar archive.
///
/// A sample's payload is the array of its `npy`, else its image (JPEG and PNG before other kinds),
/// else the first file that is no label; its label is as find_label() says. Throws CorruptData,
/// Unsupported for payloads in sparse entries, and InvalidArgument where a sample does not have
/// what `keys` names.
[[nodiscard]] ShardIndex scan(std::span<const std::byte> file, const std::filesystem::path& path,
                              const std::optional<TensorSpec>& given, const SampleKeys& keys = {});

}  // namespace precache::tar
