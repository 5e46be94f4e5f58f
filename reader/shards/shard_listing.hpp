// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/shard/encoded_manifest.hpp"
#include "precache/formats/manifest.hpp"
#include "reader/shards/manifest_watch.hpp"

namespace precache {

/// The keys of a map, for a message. Clang 14 does not compile std::views::keys.
template <typename Value>
[[nodiscard]] std::string joined_keys(const std::map<std::string, Value>& values) {
  std::string text;
  for (const auto& [key, value] : values) text += (text.empty() ? "" : ", ") + key;
  return text;
}

/// A shard file and its entry in the manifest next to it, if there is one.
struct ListedShard {
  std::filesystem::path file{};                           // without an entry
  std::shared_ptr<const std::filesystem::path> folder{};  // with one: there may be 300,000
  std::shared_ptr<const Manifest> manifest{};             // set together with `entry`
  const ShardEntry* entry = nullptr;
  std::shared_ptr<const EncodedFolder> encoded{};  // set together with `encoded_entry`
  const ShardEntry* encoded_entry = nullptr;
  std::shared_ptr<const ManifestWatch> watch{};  // of either manifest

  /// The entry in either manifest; null without one.
  [[nodiscard]] const ShardEntry* known() const { return entry != nullptr ? entry : encoded_entry; }
  [[nodiscard]] std::filesystem::path path() const {
    return folder == nullptr ? file : *folder / known()->file;
  }
  /// The split of `entry`.  REQUIRES: `entry` is set.
  [[nodiscard]] const std::string& split() const;
};

/// Lists the shards of a path: a folder with a manifest (of tensors or of encoded images), the
/// manifest of tensors, a folder of shards, a shard, or a pattern of shards. Opens no shard.
///
/// | folder | `split` names | `split` is empty | no `split` |
/// |---|---|---|---|
/// | with a manifest | one of its splits | the only one, else `train` | all |
/// | without | one of groups_by_name() | the only group for training | all |
///
/// Leaves out sidecars that a pattern matches. Throws IoError, CorruptData and Unsupported for a
/// manifest, and InvalidArgument if no split or file matches.
[[nodiscard]] std::vector<ListedShard> list_shards(const std::filesystem::path& path,
                                                   std::optional<std::string_view> split);

/// Lists these shards in this order.
[[nodiscard]] std::vector<ListedShard> list_shards(
    const std::vector<std::filesystem::path>& shards);

/// Throws InvalidArgument if a folder has an unfinished split, which lacks some of its shards.
void check_finished(const std::filesystem::path& folder);

/// True for the usual names of shards: "x.tar", "x.tar.gz", "train-00000-of-00003".
[[nodiscard]] bool is_shard_name(std::string_view file);

/// True for the names of files that precache writes next to shards: manifests, lists, and indexes
/// for other readers.
[[nodiscard]] bool is_sidecar_name(std::string_view file);

/// The name of a shard before its number: "train" of "train-000012.tar" and "train-00012-of-01024".
[[nodiscard]] std::string shard_prefix(const std::filesystem::path& shard);

/// The splits of shards without a manifest, by the prefix of their names: "mnist-test" and
/// "mnist-train". If no prefix contains a word like "train" or "test", all shards are one group
/// without a name.
using NameGroups = std::map<std::string, std::vector<std::filesystem::path>>;
[[nodiscard]] NameGroups groups_by_name(const std::vector<std::filesystem::path>& shards);

inline constexpr const char* kMissingShard = "the manifest lists this file, but it does not exist";

/// The rest of a shard whose end is missing or cannot be read.
struct CutShard {
  std::uint64_t samples = 0;  // complete ones
  std::uint64_t offset = 0;   // of the damage
  std::string reason;
};

/// For a tar archive without a manifest; none if its entries follow each other to the end.
[[nodiscard]] std::optional<CutShard> find_cut(std::span<const std::byte> archive,
                                               const std::filesystem::path& path);

/// For a shard with a manifest; none if it has the size that the manifest says.
[[nodiscard]] std::optional<CutShard> find_cut(const ListedShard& shard, std::uint64_t bytes);

}  // namespace precache
