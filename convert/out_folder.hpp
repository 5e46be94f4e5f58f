// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "precache/convert/build.hpp"
#include "precache/formats/manifest.hpp"

namespace precache {

/// The finished things in OUT: the manifest, shards under their final names and the report of
/// skipped samples.
class OutFolder {
 public:
  OutFolder(std::filesystem::path out, std::string split);

  [[nodiscard]] const std::optional<Manifest>& manifest() const { return manifest_; }
  /// The manifest if it has splits beside this one, else null.
  [[nodiscard]] const Manifest* other_splits() const;
  /// The split if it is finished, else null.
  [[nodiscard]] const SplitEntry* finished_split() const;
  [[nodiscard]] std::filesystem::path shard_path(std::uint64_t shard,
                                                 std::string_view extension) const;
  /// All shards of this split that stand in OUT, whoever wrote them.
  [[nodiscard]] std::vector<std::filesystem::path> shards() const;

  /// Removes the split: from the manifest first, then its indexes, shards and skipped samples.
  void discard_split();
  /// Writes the report of skipped samples of this split beside those of others.
  void publish_skipped(const std::vector<SkippedSample>& skipped) const;
  /// The lines of this split in such a report, and the way to publish them elsewhere.
  [[nodiscard]] std::string skipped_lines() const;
  void publish_skipped_lines(const std::string& lines) const;
  /// Adds the split to the manifest, or makes it.
  void publish(const Manifest& dataset, SplitEntry split);

 private:
  [[nodiscard]] std::filesystem::path manifest_path() const { return out_ / kManifestName; }
  [[nodiscard]] std::string skipped_lines(bool own) const;

  std::filesystem::path out_;
  std::string split_;
  std::optional<Manifest> manifest_;
};

/// Throws InvalidArgument if a split cannot be called so.
void check_split_name(const std::string& split);

}  // namespace precache
