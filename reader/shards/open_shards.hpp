// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "reader/shards/shard_listing.hpp"
#include "reader/shards/shard_set.hpp"

namespace precache {

/// What a manifest says of a shard, without opening it; or what a scan finds. Throws IoError,
/// CorruptData and Unsupported.
[[nodiscard]] ShardSet::Shard open_shard(const ListedShard& listed, const OpenOptions& options);

/// Scans a shard that no manifest of tensors describes. Throws CorruptData and Unsupported.
[[nodiscard]] ShardIndex scan_mapped(const MappedShard& mapped, const ListedShard& listed,
                                     const OpenOptions& options);

/// Opens shards by what their manifests say of them; those without one are scanned. Throws IoError,
/// CorruptData, Unsupported and InvalidArgument.
[[nodiscard]] std::shared_ptr<const ShardSet> open_shards(const std::vector<ListedShard>& listed,
                                                          const OpenOptions& options);

/// Samples of shards that are open already.
[[nodiscard]] Dataset open_dataset(std::shared_ptr<const ShardSet> shards);

}  // namespace precache
