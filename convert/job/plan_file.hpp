// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "convert/job/plan.hpp"
#include "convert/source/keys.hpp"
#include "convert/source/slice.hpp"
#include "formats/os/file.hpp"

namespace precache {

/// The facts about the samples of one split.
struct PlannedSplitFacts {
  std::string name;
  std::uint64_t samples = 0;
  std::uint64_t shards = 0;
  std::string fingerprint;  // Listing::fingerprint() of these samples
};

/// The samples of a split in a listing.
struct PlannedSplit {
  const Plan& plan;
  const std::vector<std::uint64_t>* samples = nullptr;  // null: all
};

/// The facts about all samples together. They are found once, when the source is listed.
struct SourceFacts {
  std::uint64_t samples = 0;
  std::uint64_t bytes = 0;  // of all samples
  NameLimits limits;
  std::string longest_key;           // the first of them
  std::optional<LabelRange> labels;  // none: no sample has one
  std::vector<std::uint64_t> unused_classes;
  std::string fingerprint;  // Listing::fingerprint()
  std::uint64_t stamp = 0;  // Listing::stamp()
  std::vector<PlannedSplitFacts> splits;

  SourceFacts() = default;
  /// `classes` is how many there are.
  SourceFacts(const Listing& listing, const Keys& keys, std::size_t classes);
};

/// A frozen plan: the samples of each shard in the order of its records, with their final keys, as
/// one slice of the file. The shards of the first split come first, then those of the next. A part
/// of a job reads the slices of the shards that it makes, and nothing else. docs/internals/plan.md
/// specifies the file.
///
/// Any number of threads may use one at once.
class PlanFile {
 public:
  /// Returns what a slice keeps of a sample after its targets.
  using Note = std::function<std::string(const ListedFile&)>;

  /// Writes the file through a temporary. `identity` is that of the plan. Throws IoError, and as
  /// `note` does.
  static void write(const std::filesystem::path& path, const std::string& identity,
                    const SourceFacts& facts, const std::vector<PlannedSplit>& splits,
                    const Listing& listing, const Keys& keys, const Note& note = {});

  /// Throws IoError, CorruptData if the head or the facts are damaged, and Unsupported for another
  /// version of the file.
  explicit PlanFile(const std::filesystem::path& path);

  [[nodiscard]] const std::filesystem::path& path() const { return file_.path(); }
  [[nodiscard]] const std::string& identity() const { return identity_; }
  [[nodiscard]] const SourceFacts& facts() const { return facts_; }
  [[nodiscard]] std::uint64_t shards() const { return shards_; }
  /// How many records a shard has, and how many bytes their samples have in the source.
  /// REQUIRES: shard < shards(). Throws IoError and CorruptData, as slice() does.
  [[nodiscard]] std::uint64_t shard_records(std::uint64_t shard) const;
  [[nodiscard]] std::uint64_t source_bytes(std::uint64_t shard) const;
  [[nodiscard]] Slice slice(std::uint64_t shard) const;
  /// Reads all of it. Throws CorruptData if anything is damaged.
  void verify() const;

 private:
  struct IndexEntry {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    std::uint64_t samples = 0;
    std::uint64_t source_bytes = 0;
    std::uint32_t crc = 0;
  };
  class Writer;

  [[nodiscard]] IndexEntry entry(std::uint64_t shard) const;
  [[nodiscard]] std::vector<std::byte> read(std::uint64_t offset, std::uint64_t bytes,
                                            std::uint32_t crc) const;

  File file_;
  std::uint64_t file_bytes_ = 0;
  std::string identity_;
  std::uint64_t shards_ = 0;
  std::uint64_t index_offset_ = 0;
  SourceFacts facts_;
};

/// The slices of the shards that are being written. Any number of threads may use one at once.
class OpenSlices {
 public:
  /// Borrows `file`.
  explicit OpenSlices(const PlanFile& file) : file_(file) {}
  /// The slice of a shard, which is read at the first call. Throws as PlanFile::slice() does.
  [[nodiscard]] std::shared_ptr<const Slice> of(std::uint64_t shard);
  /// The shard is written.
  void close(std::uint64_t shard);

 private:
  const PlanFile& file_;
  std::mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<const Slice>> open_;
};

}  // namespace precache
