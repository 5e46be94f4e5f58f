// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "convert/job/work_folder.hpp"
#include "formats/shard/encoded_manifest.hpp"
#include "precache/convert/job.hpp"
#include "precache/formats/manifest.hpp"

namespace precache {

/// What a manifest says of a finished split.
struct FinishedSplit {
  std::set<std::string> shards;
  std::string first_shard;
  std::uint64_t samples = 0;
  std::uint64_t skipped = 0;
  std::uint64_t bytes = 0;
  std::string content_fingerprint;
};

/// The finished things in OUT: the manifest, be it of tensors or of encoded images, shards under
/// their final names and the report of skipped samples.
class OutFolder {
 public:
  /// Throws CorruptData if the manifest is damaged, InvalidArgument if a file that is not ours has
  /// the name of one that would be written.
  OutFolder(std::filesystem::path out, std::string split);

  [[nodiscard]] const std::optional<Manifest>& manifest() const { return manifest_; }
  [[nodiscard]] const EncodedManifest& encoded() const { return encoded_; }
  /// The manifest if it has splits other than this one, else null.
  [[nodiscard]] const Manifest* other_splits() const;
  /// The split of tensors if it is finished, else null.
  [[nodiscard]] const SplitEntry* finished_split() const;
  /// The split, of tensors or encoded images, if it is finished.
  [[nodiscard]] std::optional<FinishedSplit> finished() const;
  [[nodiscard]] std::filesystem::path shard_path(std::uint64_t shard,
                                                 std::string_view extension) const;
  /// The shards of this split in OUT that a manifest or an unfinished job lists: what may be
  /// replaced. Throws InvalidArgument if there are some and `overwrite` is not set; and always if
  /// OUT has shards of this split's name that are not listed: they are the user's data, which a new
  /// dataset must neither replace nor mix with.
  [[nodiscard]] std::vector<ReplacedFile> replaceable_shards(bool overwrite) const;

  /// Whether a file is called like a shard of this split.
  [[nodiscard]] bool is_shard_name(const std::string& file) const;
  /// Removes the split: from the manifest first, then its sidecars, those of `listed` that belong
  /// to it and are still as they were, and the report of its skipped samples.
  void discard_split(const std::vector<ReplacedFile>& listed);
  /// Replaces the lines of this split in the report of skipped samples; other splits keep theirs.
  void publish_skipped(const std::vector<SkippedSample>& skipped) const;
  /// The lines of this split in such a report, and the way to publish them elsewhere.
  [[nodiscard]] std::string skipped_lines() const;
  void publish_skipped_lines(const std::string& lines) const;
  /// Adds the splits of `dataset` to the manifest, or makes it.
  void publish(Manifest dataset);
  /// The same for this split of encoded images.
  void publish(EncodedSplit split);

 private:
  [[nodiscard]] std::filesystem::path manifest_path() const { return out_ / kManifestName; }
  [[nodiscard]] std::string skipped_lines(bool own) const;
  void read_manifest();
  /// Writes what is left of the manifests, or removes them.
  void write_manifest() const;
  /// Throws IoError if the manifest is not what it was when this was made.
  void check_manifest_is_current() const;
  /// Whether those of the names that are shards of this split are as they were when they were
  /// listed.
  [[nodiscard]] bool are_as_listed(const std::set<std::string>& names,
                                   const std::vector<ReplacedFile>& listed) const;
  /// Those of the names that are shards of this split, as they are now.
  [[nodiscard]] std::vector<ReplacedFile> shards_called(const std::set<std::string>& names) const;

  std::filesystem::path out_;
  std::string split_;
  std::optional<Manifest> manifest_;
  EncodedManifest encoded_;
};

/// Throws InvalidArgument if a split cannot be called so.
void check_split_name(const std::string& split);

}  // namespace precache
