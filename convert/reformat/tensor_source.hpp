// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "convert/reformat/tensor_conversion.hpp"
#include "convert/source/keys.hpp"
#include "convert/source/listing.hpp"
#include "precache/formats/manifest.hpp"
#include "precache/reader/dataset.hpp"
#include "reader/shards/shard_listing.hpp"
#include "reader/shards/shard_set.hpp"

namespace precache {

/// One split of the shards that are to be converted.
///
/// Keys of our own shards are read when asked for. Those of others may be missing, equal, or such
/// as no tar can have, so there is a listing of them from which they get new ones.
class SourceSplit {
 public:
  /// Shards of one manifest's split.
  SourceSplit(std::string name, const SplitEntry& entry, std::vector<ListedShard> shards);
  /// Shards without a manifest.
  SourceSplit(std::string name, std::vector<ListedShard> shards, const OpenOptions& options);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const ShardSet& shards() const { return *shards_; }
  /// What the manifest says of a shard; null where there is none.
  [[nodiscard]] const ShardEntry* entry(std::size_t shard) const { return listed_[shard].entry; }
  /// All that a manifest says of the split but its shards.
  [[nodiscard]] const SplitEntry& facts() const { return facts_; }
  [[nodiscard]] const NameLimits& limits() const { return *facts_.names; }
  /// The labels that occur; of a dataset with a manifest, from 0 on. None if no sample has one.
  [[nodiscard]] std::optional<LabelRange> labels() const;
  /// Throws CorruptData, also for a name that is beyond the limits that the manifest has.
  [[nodiscard]] SampleName sample_name(std::uint64_t sample) const;
  [[nodiscard]] std::vector<std::uint64_t> shard_samples() const;

 private:
  [[nodiscard]] SampleName stored_name(std::uint64_t sample) const;

  std::string name_;
  std::vector<ListedShard> listed_;
  std::shared_ptr<const ShardSet> shards_;
  SplitEntry facts_;
  Listing listing_;  // of shards without a manifest
  std::optional<Keys> keys_;
};

/// A path whose key (see keys.hpp) is that of a sample in a third-party shard, but for what would
/// lead out of the folder in which a tar is extracted, and for what no name should have. A sample
/// without a key gets its number.
[[nodiscard]] std::string foreign_path(std::string_view key, std::uint64_t sample);

/// The tensor shards that a path means, and what is known of them.
struct TensorSource {
  TensorMeaning meaning;
  std::vector<std::string> classes;
  Format format = Format::kTar;  // of the first shard
  std::vector<std::unique_ptr<const SourceSplit>> splits;
  std::vector<std::filesystem::path> files;
  std::filesystem::path folder;  // of the first shard
  std::uint64_t shards = 0;
  std::uint64_t bytes = 0;
  /// Changes when a file's name, size or time does, or a manifest.
  std::string fingerprint;
  bool has_manifest = false;
};

/// The shards, split and keys that the options name. Throws InvalidArgument where path, split or
/// keys name nothing, shards do not belong together or labels would be lost, Unsupported where they
/// are not tensors of one shape, IoError and CorruptData.
[[nodiscard]] TensorSource open_tensor_source(const ReformatOptions& options);

}  // namespace precache
