// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "reader/shards/shard_listing.hpp"
#include "reader/shards/shard_set.hpp"

namespace precache {

/// Describes a shard from its manifest, without opening it; without a manifest, scans it. Throws
/// IoError, CorruptData and Unsupported.
[[nodiscard]] ShardSet::IndexedShard open_shard(ListedShard listed, const OpenOptions& options);

/// Scans a shard without a manifest of tensors. Throws CorruptData and Unsupported.
[[nodiscard]] ShardIndex scan_mapped(const MappedShard& mapped, const ListedShard& listed,
                                     const OpenOptions& options);

/// Calls open_shard() for all shards. Throws IoError, CorruptData, Unsupported and InvalidArgument.
[[nodiscard]] std::shared_ptr<const ShardSet> open_shards(std::vector<ListedShard> listed,
                                                          const OpenOptions& options);

/// The dataset of shards that are already open.
[[nodiscard]] Dataset open_dataset(std::shared_ptr<const ShardSet> shards);

}  // namespace precache
