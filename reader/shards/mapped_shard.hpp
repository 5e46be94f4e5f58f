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
#include "precache/formats/error.hpp"

namespace precache {

/// A mapped part of a file, unmapped by the destructor. An empty file gives an empty mapping.
class Mapping {
 public:
  /// `protection` is that of mmap(2); writes stay private. Throws IoError.
  Mapping(const File& file, std::uint64_t offset, std::size_t size, int protection);
  [[nodiscard]] std::span<std::byte> bytes() const {
    return {base_.get(), base_.get_deleter().size};
  }

 private:
  struct Unmap {
    std::size_t size;
    void operator()(std::byte* base) const { ::munmap(base, size); }
  };
  std::unique_ptr<std::byte, Unmap> base_{nullptr, Unmap{0}};
};

/// An open shard whose whole file is mapped for reading.
///
/// The mapping stays readable if the file is deleted or replaced. check() finds out if the file was
/// truncated or written to. Any number of threads may use one at once.
class MappedShard {
 public:
  /// Throws IoError.
  explicit MappedShard(const std::filesystem::path& path);
  MappedShard(const MappedShard&) = delete;
  MappedShard& operator=(const MappedShard&) = delete;
  ~MappedShard();

  /// The number of open shards of this process.
  [[nodiscard]] static std::size_t open_count();

  [[nodiscard]] const std::filesystem::path& path() const { return file_.path(); }
  [[nodiscard]] const File& file() const { return file_; }
  [[nodiscard]] const FileState& state() const { return state_; }
  [[nodiscard]] std::span<const std::byte> bytes() const { return mapping_.bytes(); }
  /// Set by a bus fault in this or in another mapping of the file.
  [[nodiscard]] std::atomic<bool>& lost() const { return lost_; }

  /// Fills the page tables for a part of bytes() that is in the page cache, so that reading it
  /// causes no page faults. Costs next to nothing the second time.
  void touch(std::uint64_t offset, std::uint64_t size) const;
  /// True if the byte, or one that is mapped together with it, was touched before.
  [[nodiscard]] bool is_touched(std::uint64_t offset) const;
  /// Throws CorruptData if the file was truncated or changed since it was opened, or if reading
  /// failed. Bytes that were read before the call may then be wrong.
  void check() const;
  /// Returns the result of `read`. If it throws CorruptData because the file was truncated or
  /// changed, throws the exception of check() instead, which names the cause.
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
  mutable std::vector<std::atomic<bool>> touched_;  // by window that one fault maps
};

/// A private mapping of a part of a shard. Writes change neither the file nor other mappings.
class PrivateRange {
 public:
  /// REQUIRES: offset + size is within the shard. Throws IoError.
  PrivateRange(std::shared_ptr<const MappedShard> shard, std::uint64_t offset, std::size_t size,
               int protection = PROT_READ | PROT_WRITE);

  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }

 private:
  std::shared_ptr<const MappedShard> shard_;
  Mapping mapping_;
  std::span<std::byte> bytes_;
  bus_fault::Watch watch_;
};

}  // namespace precache
