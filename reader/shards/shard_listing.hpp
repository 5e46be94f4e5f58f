// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "formats/shard/encoded_manifest.hpp"
#include "precache/formats/manifest.hpp"
#include "reader/shards/manifest_watch.hpp"

namespace precache {

/// A shard file, and what the manifest beside it says of it, if there is one that does.
struct ListedShard {
  std::filesystem::path path;
  std::shared_ptr<const Manifest> manifest{};  // with `entry`, or none
  const ShardEntry* entry = nullptr;
  std::shared_ptr<const EncodedFolder> encoded{};  // with `encoded_entry`, or none
  const EncodedShardEntry* encoded_entry = nullptr;
  std::shared_ptr<const ManifestWatch> watch{};  // of either manifest

  /// How many bytes it has by either manifest.
  [[nodiscard]] std::optional<std::uint64_t> known_bytes() const;
  /// The split that `entry` belongs to.  REQUIRES: there is one.
  [[nodiscard]] const std::string& split() const;
};

/// The shards that a path means: a folder with a manifest (of tensors or of encoded images), the
/// manifest of tensors, a folder of shards, a shard, or a pattern of them. Of a folder with a
/// manifest `split` is taken; empty: its only one, else `train`; none: all.
///
/// Of a folder without a manifest, `split` is one of groups_by_name(); empty: the only one that is
/// for training; none: all.
///
/// Sidecars that a pattern matches are left out. Opens no shard. Throws IoError, CorruptData and
/// Unsupported for a manifest, and InvalidArgument for a split or pattern that names nothing.
[[nodiscard]] std::vector<ListedShard> list_shards(const std::filesystem::path& path,
                                                   std::optional<std::string_view> split);

/// Several shards, in this order.
[[nodiscard]] std::vector<ListedShard> list_shards(
    const std::vector<std::filesystem::path>& shards);

/// Throws InvalidArgument if a folder has a split that is not finished: some shards are not all,
/// and nothing else tells.
void check_finished(const std::filesystem::path& folder);

/// Whether files are called so by those who write shards: "x.tar", "x.tar.gz",
/// "train-00000-of-00003".
[[nodiscard]] bool is_shard_name(std::string_view file);

/// Whether files that precache writes next to shards are called so: manifests, lists, and indexes
/// for other readers.
[[nodiscard]] bool is_sidecar_name(std::string_view file);

/// What stands before a shard's number: "train" of "train-000012.tar" and "train-00012-of-01024".
[[nodiscard]] std::string shard_prefix(const std::filesystem::path& shard);

/// The splits of shards that no manifest describes, by the prefix of their names: "mnist-test" and
/// "mnist-train". Where no prefix has a word like "train" or "test", all are one group without a
/// name.
using NameGroups = std::map<std::string, std::vector<std::filesystem::path>>;
[[nodiscard]] NameGroups groups_by_name(const std::vector<std::filesystem::path>& shards);

}  // namespace precache
