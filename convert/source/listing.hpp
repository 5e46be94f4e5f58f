// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <optional>
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
};

/// The modification time as listings keep it.
[[nodiscard]] inline std::int64_t mtime_ns(const struct stat& status) {
  return status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec;
}

/// The samples of a source in a fixed order. Each takes about 50 bytes and its path, so that
/// millions fit into memory.
class Listing {
 public:
  void add(const ListedFile& file);
  /// Appends all of `other`.
  void append(const Listing& other);
  /// Samples with equal paths are sorted by shard and offset.
  void sort_by_path();
  void set_label(std::size_t index, std::int64_t label) { entries_[index].label = label; }

  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] ListedFile operator[](std::size_t index) const;

  /// The smallest and the largest label; none if no sample has one.
  [[nodiscard]] std::optional<LabelRange> labels() const;

  /// Changes when a path, a size or a label does, but not with times or offsets: a copy of a folder
  /// and a tar of it have the same.
  [[nodiscard]] std::string fingerprint() const;

  /// Changes when anything in the listing does, including modification times and offsets.
  [[nodiscard]] std::uint64_t stamp() const;

  void save(const std::filesystem::path& path) const;
  /// Throws CorruptData if the file is not what save() wrote.
  [[nodiscard]] static Listing load(const std::filesystem::path& path);

 private:
  struct Entry {
    std::uint64_t path_offset;
    std::uint32_t path_bytes;
    std::uint32_t shard;
    std::uint64_t size;
    std::int64_t mtime_ns;
    std::int64_t label;
    std::uint64_t offset;
  };
  std::vector<Entry> entries_;
  std::string paths_;
};

}  // namespace precache
