// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace precache {

/// One sample's file as it was when the listing was made.
struct ListedFile {
  std::string_view path;  // below SOURCE
  std::uint64_t size = 0;
  std::int64_t mtime_ns = 0;
  std::int64_t label = -1;
};

/// The modification time as listings keep it.
[[nodiscard]] inline std::int64_t mtime_ns(const struct stat& status) {
  return status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec;
}

/// The samples of a source in a fixed order. Some 40 bytes and the path for each, so that millions
/// fit.
class Listing {
 public:
  void add(const ListedFile& file);
  /// Appends all of `other`.
  void append(const Listing& other);
  void sort_by_path();
  void set_label(std::size_t index, std::int64_t label) { entries_[index].label = label; }

  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] ListedFile operator[](std::size_t index) const;

  /// Changes when a path, a size or a label does; time stamps do not count, so a copy has the same.
  [[nodiscard]] std::string fingerprint() const;

  void save(const std::filesystem::path& path) const;
  /// Throws CorruptData if the file is not what save() wrote.
  [[nodiscard]] static Listing load(const std::filesystem::path& path);

 private:
  struct Entry {
    std::uint64_t path_offset;
    std::uint64_t path_bytes;
    std::uint64_t size;
    std::int64_t mtime_ns;
    std::int64_t label;
  };
  std::vector<Entry> entries_;
  std::string paths_;
};

}  // namespace precache
