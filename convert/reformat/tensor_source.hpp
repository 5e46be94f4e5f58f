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

/// One split of the shards to convert.
///
/// Keys of precache shards are read when needed. Those of third-party shards may be missing, equal
/// or not allowed in a tar, so they are listed first and get new keys.
class SourceSplit {
 public:
  /// Shards of one manifest's split.
  SourceSplit(std::string name, const SplitEntry& entry, std::vector<ListedShard> shards);
  /// Shards without a manifest.
  SourceSplit(std::string name, std::vector<ListedShard> shards, const OpenOptions& options);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const ShardSet& shards() const { return *shards_; }
  /// The manifest entry of a shard; null if there is no manifest.
  [[nodiscard]] const ShardEntry* entry(std::size_t shard) const { return listed_[shard].entry; }
  /// The manifest entry of the split, without its shards.
  [[nodiscard]] const SplitEntry& facts() const { return facts_; }
  [[nodiscard]] const NameLimits& limits() const { return *facts_.names; }
  /// The range of labels; with a manifest, from 0 on. None if no sample has a label.
  [[nodiscard]] std::optional<LabelRange> labels() const;
  /// Throws CorruptData, including for a name that exceeds the limits in the manifest.
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

/// A path whose key (see keys.hpp) is that of a sample in a third-party shard, without parts that
/// would lead out of the folder in which a tar is extracted, and without control characters. A
/// sample without a key gets its number.
[[nodiscard]] std::string third_party_path(std::string_view key, std::uint64_t sample);

/// The tensor shards that a path names, and the facts about them.
struct TensorSource {
  TensorMeaning meaning;
  std::vector<std::string> classes;
  Format format = Format::kTar;  // of the first shard
  std::vector<std::unique_ptr<const SourceSplit>> splits;
  std::vector<std::filesystem::path> files;
  std::filesystem::path folder;  // of the first shard
  std::uint64_t shards = 0;
  std::uint64_t bytes = 0;
  /// Changes when the name, size or time of a file changes, or the manifest.
  std::string fingerprint;
  bool has_manifest = false;
  std::vector<std::string> dropped_columns;  // without a manifest: as in JobEstimate
};

/// Opens the shards that the options name. Throws InvalidArgument if path, split or keys name
/// nothing, if the shards do not belong together or if labels would be lost, Unsupported if they
/// are not tensors of one shape, IoError and CorruptData.
[[nodiscard]] TensorSource open_tensor_source(const ReformatOptions& options);

}  // namespace precache
