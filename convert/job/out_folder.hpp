// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "convert/job/skipped_report.hpp"
#include "formats/shard/encoded_manifest.hpp"
#include "precache/convert/job.hpp"
#include "precache/formats/manifest.hpp"

namespace precache {

/// The finished files in OUT: the manifest of tensors or of encoded images, the shards under their
/// final names, and the report of skipped samples.
class OutFolder {
 public:
  /// Throws CorruptData if the manifest is damaged, InvalidArgument if a file that precache did not
  /// write has the name of the report.
  OutFolder(std::filesystem::path out, std::string split);

  [[nodiscard]] const std::optional<Manifest>& manifest() const { return manifest_; }
  [[nodiscard]] const EncodedManifest& encoded() const { return encoded_; }
  /// The manifest entry of the split, of tensors or encoded images, if it is finished.
  [[nodiscard]] std::optional<SplitEntry> finished() const;
  /// The text of the manifest that finished() is about.
  [[nodiscard]] std::string manifest_json() const;
  /// The shards of this split in OUT that may be replaced: those that a manifest or an unfinished
  /// job lists. Throws InvalidArgument if there are any and `overwrite` is not set; and in any case
  /// if OUT has a file that is called like a shard of this split and is not listed: it is the
  /// user's, and a new dataset must neither replace it nor mix with it.
  [[nodiscard]] std::vector<ReplacedFile> replaceable_shards(bool overwrite) const;

  /// Removes the split: from the manifest first, then its sidecars, its shards in `listed` that
  /// have not changed, and its lines in the report of skipped samples.
  void discard_split(const std::vector<ReplacedFile>& listed);
  /// Begins to replace the lines of this split in the report of skipped samples.
  [[nodiscard]] SkippedReport skipped_report() const { return {out_, split_}; }
  /// Adds the splits of `dataset` to the manifest, or makes it.
  void publish(Manifest dataset);
  /// The same for this split of encoded images.
  void publish(EncodedSplit split);

 private:
  [[nodiscard]] std::filesystem::path manifest_path() const { return out_ / kManifestName; }
  void read_manifest();
  /// Writes both manifests; removes the file of one that is empty.
  void write_manifest() const;
  /// Throws IoError if the manifest has changed since this object read it.
  void check_manifest_is_current() const;
  /// The shards of this split among `names`, as they are now.
  [[nodiscard]] std::vector<ReplacedFile> shards_called(const std::set<std::string>& names) const;

  std::filesystem::path out_;
  std::string split_;
  std::optional<Manifest> manifest_;
  EncodedManifest encoded_;
};

/// Throws InvalidArgument if `split` is not a valid name.
void check_split_name(const std::string& split);

/// Throws InvalidArgument if a path is empty or `out` holds encoded images where tensors are to be
/// written, or the reverse; IoError if `out` is not a folder. `source_field` is the caller's name
/// for the source.
void check_job_folders(const std::filesystem::path& source, const char* source_field,
                       const std::filesystem::path& out, bool is_encoded);

}  // namespace precache
