// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "precache/formats/name_limits.hpp"

namespace precache {

/// One sample as it was when the listing was made: a file, or a part of a shard.
struct ListedFile {
  std::string_view path;  // below SOURCE; in a shard, its name there
  std::uint64_t size = 0;
  std::int64_t mtime_ns = 0;  // of a file; that of a shard is in SourceShard
  std::int64_t label = -1;
  std::uint32_t shard = 0;  // index in Source::shards, if there are any
  std::uint64_t offset = 0;
  std::string_view targets{};  // values of Source::targets, which follow the sample into the plan
};

/// The modification time as listings keep it.
[[nodiscard]] inline std::int64_t mtime_ns(const struct stat& status) {
  return status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec;
}

/// The samples of a source in a fixed order. Each takes about 60 bytes and its path, so that
/// millions fit into memory: it grows in blocks and never moves what it has.
class Listing {
 public:
  Listing() = default;
  Listing(Listing&&) = default;
  Listing& operator=(Listing&&) = default;

  void add(const ListedFile& file);
  /// Appends all of `other`.
  void append(const Listing& other);
  /// The same without a copy of the paths.
  void append(Listing&& other);
  /// These samples, by their numbers.
  [[nodiscard]] Listing subset(std::span<const std::uint64_t> samples) const;
  /// Samples with equal paths are sorted by shard and offset.
  void sort_by_path();
  void set_label(std::size_t index, std::int64_t label) { entries_[index].label = label; }

  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] ListedFile operator[](std::size_t index) const;

  /// The smallest and the largest label; none if no sample has one.
  [[nodiscard]] std::optional<LabelRange> labels() const;

  /// Changes when a path, a size, a label or targets do, but not with times or offsets: a copy of a
  /// folder and a tar of it have the same.
  [[nodiscard]] std::string fingerprint() const;

  /// Changes when anything in the listing does, including modification times and offsets.
  [[nodiscard]] std::uint64_t stamp() const;

 private:
  struct Entry {
    const char* text;  // the path, then the targets
    std::uint32_t path_bytes;
    std::uint32_t targets_bytes;
    std::uint32_t shard;
    std::uint64_t size;
    std::int64_t mtime_ns;
    std::int64_t label;
    std::uint64_t offset;
  };
  struct Block {
    std::unique_ptr<char[]> bytes;
    std::size_t used = 0;
    std::size_t size = 0;
  };

  [[nodiscard]] char* reserve(std::size_t bytes);

  std::deque<Entry> entries_;
  std::vector<Block> blocks_;
};

}  // namespace precache
