// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "formats/shard/sample_keys.hpp"
#include "formats/shard/shard_index.hpp"

namespace precache::tfrecord {

/// The index of all samples that SampleFinder finds in a TFRecord file. Checks the CRCs of lengths,
/// not those of data.
///
/// A shape is known only where features tell it, and then of uint8. Throws CorruptData, and
/// InvalidArgument where a record does not have what `keys` names.
[[nodiscard]] ShardIndex scan(std::span<const std::byte> file, const std::filesystem::path& path,
                              const std::optional<TensorSpec>& given, const SampleKeys& keys = {});

}  // namespace precache::tfrecord
