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
  std::string_view path;  // below SOURCE; in a shard, the name that it has there
  std::uint64_t size = 0;
  std::int64_t mtime_ns = 0;  // of a file; a shard's own is kept with the shard
  std::int64_t label = -1;
  std::uint32_t shard = 0;  // number among the shards of the source, if it has any
  std::uint64_t offset = 0;
};

/// The modification time as listings keep it.
[[nodiscard]] inline std::int64_t mtime_ns(const struct stat& status) {
  return status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec;
}

/// The samples of a source in a fixed order. Some 50 bytes and the path for each, so that millions
/// fit.
class Listing {
 public:
  void add(const ListedFile& file);
  /// Appends all of `other`.
  void append(const Listing& other);
  /// Where paths are equal, by their place.
  void sort_by_path();
  void set_label(std::size_t index, std::int64_t label) { entries_[index].label = label; }

  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] ListedFile operator[](std::size_t index) const;

  /// The smallest and the largest label; none if no sample has one.
  [[nodiscard]] std::optional<LabelRange> labels() const;

  /// Changes when a path, a size or a label does; time stamps and places do not count, so a copy
  /// has the same, and so has a tar of a folder.
  [[nodiscard]] std::string fingerprint() const;

  /// Changes when anything does that is listed, modification times and places in shards included.
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
