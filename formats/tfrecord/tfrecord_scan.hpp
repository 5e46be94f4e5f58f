// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "formats/shard/sample_keys.hpp"
#include "formats/shard/shard_index.hpp"

namespace precache::tfrecord {

/// Reads where every sample of a TFRecord file lies, ours or another's. Checks the CRCs of lengths,
/// not those of data.
///
/// What an Example's image, label and key are is told by the usual names of features; the image is
/// else its largest bytes. Of a record that is no Example all data is the payload. A shape is known
/// only where features tell it, and then of uint8. Throws CorruptData.
[[nodiscard]] ShardIndex scan(std::span<const std::byte> file, const std::filesystem::path& path,
                              const std::optional<TensorSpec>& given, const SampleKeys& keys = {});

}  // namespace precache::tfrecord
