// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "formats/shard/shard_index.hpp"

namespace precache {

/// Checks what the named columns of a shard must hold: a mask has the height and width of the
/// tensors, original sizes are positive, floats are finite, and a byte for a class is 0 or 1.
/// `file` is the whole shard. Throws CorruptData.
void check_named_values(const ShardIndex& index, const std::filesystem::path& path,
                        std::span<const std::byte> file);

}  // namespace precache
