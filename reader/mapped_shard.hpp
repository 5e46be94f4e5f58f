// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "formats/base/file.hpp"
#include "reader/bus_fault.hpp"

namespace precache {

/// Addresses that unmap themselves. An empty file gives an empty mapping.
class Mapping {
 public:
  Mapping() = default;
  /// `protection` as for mmap(2); writes stay private. Throws IoError.
  Mapping(const File& file, std::uint64_t offset, std::size_t size, int protection);
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();
  [[nodiscard]] std::span<std::byte> bytes() const { return {base_, size_}; }

 private:
  std::byte* base_ = nullptr;
  std::size_t size_ = 0;
};

/// What tells one state of a file from another.
struct FileState {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t bytes = 0;
  std::int64_t modified_ns = 0;
  bool operator==(const FileState&) const = default;
};

/// Bytes of a shard that were lent for writing, and by whom they are held.
///
/// All lending of a shard is in one writable, private mapping, whose page tables stay warm from
/// epoch to epoch. Writes stay in it until their range is given back; then the pages that were
/// written to are dropped, and the file's come back. Any number of threads may use one at once.
class WritableMapping {
 public:
  WritableMapping(const File& file, std::uint64_t size, std::atomic<bool>& lost);

  /// Lends a range of the file; null if some of its bytes are held, or may show another holder's
  /// writes.
  [[nodiscard]] std::byte* lend(std::uint64_t offset, std::size_t size);
  void give_back(std::uint64_t offset, std::size_t size);

 private:
  struct Range {
    std::uint64_t first = 0;
    std::uint64_t end = 0;
    bool operator==(const Range&) const = default;
  };
  [[nodiscard]] bool is_held(const Range& range) const;

  Mapping mapping_;
  bus_fault::Watch watch_;
  std::mutex mutex_;
  std::vector<Range> held_;  // few: those of batches
};

/// A shard that is open and mapped whole, for reading.
///
/// A file that is deleted or replaced by another of its name stays readable here. One that is cut
/// or written to is found by check(). Any number of threads may use one at once.
class MappedShard {
 public:
  /// Throws IoError.
  explicit MappedShard(const std::filesystem::path& path);

  [[nodiscard]] const std::filesystem::path& path() const { return file_.path(); }
  [[nodiscard]] const File& file() const { return file_; }
  [[nodiscard]] const FileState& state() const { return state_; }
  [[nodiscard]] std::span<const std::byte> bytes() const { return mapping_.bytes(); }
  /// Made when first asked for. Throws IoError.
  [[nodiscard]] WritableMapping& writable() const;

  /// Throws CorruptData if the file was cut or changed since it was opened, or reading failed: what
  /// was read of it until now may be wrong.
  void check() const;

 private:
  File file_;
  FileState state_;
  mutable std::atomic<bool> lost_{false};
  Mapping mapping_;
  bus_fault::Watch watch_;
  mutable std::mutex mutex_;
  mutable std::optional<WritableMapping> writable_;
};

/// A part of a shard that is its holder's alone, to read and to write; nobody else sees the writes,
/// and the file does not change.
class WritableRange {
 public:
  /// None if somebody holds bytes of it.  REQUIRES: offset + size lies in the shard.
  [[nodiscard]] static std::optional<WritableRange> lend(std::shared_ptr<const MappedShard> shard,
                                                         std::uint64_t offset, std::size_t size);
  WritableRange(WritableRange&&) noexcept = default;
  WritableRange& operator=(WritableRange&&) = delete;
  ~WritableRange();

  [[nodiscard]] const MappedShard& shard() const { return *shard_; }
  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }
  /// Brings the page tables to what the page cache holds, so that the holder takes no faults.
  void touch(std::size_t first, std::size_t size) const;

 private:
  WritableRange(std::shared_ptr<const MappedShard> shard, std::uint64_t offset,
                std::span<std::byte> bytes)
      : shard_(std::move(shard)), offset_(offset), bytes_(bytes) {}

  std::shared_ptr<const MappedShard> shard_;  // none: moved from
  std::uint64_t offset_;
  std::span<std::byte> bytes_;
};

}  // namespace precache
