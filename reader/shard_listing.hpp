// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "precache/formats/manifest.hpp"

namespace precache {

/// A shard file, and what the manifest beside it says of it, if there is one that does.
struct ListedShard {
  std::filesystem::path path;
  std::shared_ptr<const Manifest> manifest;  // with `entry`, or none
  const ShardEntry* entry = nullptr;
};

/// The shards that a path means: a folder with a manifest, the manifest, a folder of shards, a
/// shard, or a pattern of them. Of a folder with a manifest `split` is taken; empty: its only one,
/// else `train`; none: all.
///
/// Opens no shard. Throws IoError, CorruptData and Unsupported for a manifest, and InvalidArgument
/// for a split or pattern that names nothing.
[[nodiscard]] std::vector<ListedShard> list_shards(const std::filesystem::path& path,
                                                   std::optional<std::string_view> split);

/// Several shards, in this order.
[[nodiscard]] std::vector<ListedShard> list_shards(
    const std::vector<std::filesystem::path>& shards);

/// What stands before a shard's number: "train" of "train-000012.tar".
[[nodiscard]] std::string shard_prefix(const std::filesystem::path& shard);

}  // namespace precache
