// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "formats/os/bus_fault.hpp"
#include "formats/os/file.hpp"
#include "formats/os/file_state.hpp"
#include "precache/formats/error.hpp"

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

/// A shard that is open and mapped whole, for reading.
///
/// A file that is deleted or replaced by another of its name stays readable here. One that is cut
/// or written to is found by check(). Any number of threads may use one at once.
class MappedShard {
 public:
  /// Throws IoError.
  explicit MappedShard(const std::filesystem::path& path);
  MappedShard(const MappedShard&) = delete;
  MappedShard& operator=(const MappedShard&) = delete;
  ~MappedShard();

  /// How many there are in this process.
  [[nodiscard]] static std::size_t open_count();

  [[nodiscard]] const std::filesystem::path& path() const { return file_.path(); }
  [[nodiscard]] const File& file() const { return file_; }
  [[nodiscard]] const FileState& state() const { return state_; }
  [[nodiscard]] std::span<const std::byte> bytes() const { return mapping_.bytes(); }
  /// For mappings of parts of the file: a fault in them loses the shard too.
  [[nodiscard]] std::atomic<bool>& lost() const { return lost_; }

  /// As touch_pages() for a part of bytes(). Costs next to nothing where it was done before.
  void touch(std::uint64_t offset, std::uint64_t size) const;
  /// Whether the byte, or one that is mapped together with it, was touched before.
  [[nodiscard]] bool is_touched(std::uint64_t offset) const;
  /// Throws CorruptData if the file was cut or changed since it was opened, or reading failed: what
  /// was read of it until now may be wrong.
  void check() const;
  /// Returns what `read` makes of the bytes. Where that is CorruptData and check() knows why, as
  /// the zeros behind the end of a file that was cut are no label, it throws what check() throws.
  template <typename Read>
  auto checked(const Read& read) const {
    try {
      return read();
    } catch (const CorruptData&) {
      check();
      throw;
    }
  }

 private:
  [[nodiscard]] std::size_t window_of(std::uint64_t offset) const;

  File file_;
  FileState state_;
  mutable std::atomic<bool> lost_{false};
  Mapping mapping_;
  bus_fault::Watch watch_;
  mutable std::vector<std::atomic<bool>> touched_;  // by windows that one fault maps
};

/// A part of a shard in a mapping of its own, to read and to write: nobody else sees the writes,
/// and the file does not change.
class PrivateRange {
 public:
  /// REQUIRES: offset + size lies in the shard. Throws IoError.
  PrivateRange(std::shared_ptr<const MappedShard> shard, std::uint64_t offset, std::size_t size,
               int protection = PROT_READ | PROT_WRITE);

  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::shared_ptr<const MappedShard> shard_;
  Mapping mapping_;
  std::span<std::byte> bytes_;
  bus_fault::Watch watch_;
};

/// Fills the page tables for mapped bytes that are in the page cache, so that their reader takes no
/// faults.
void touch_pages(std::span<const std::byte> bytes);

}  // namespace precache
