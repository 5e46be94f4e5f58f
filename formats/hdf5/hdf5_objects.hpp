// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/hdf5/hdf5_id.hpp"

// The objects of third-party files. All of it throws LibraryFailure, and needs with_library()
// around it.
namespace precache::hdf5 {

/// Calls `action` alone in the library. Its failures become CorruptData of `path`.
template <typename Action>
auto with_library(const std::filesystem::path& path, const Action& action) {
  const LibraryLock lock;
  try {
    return action();
  } catch (const LibraryFailure& failure) {
    throw CorruptData(path, 0, "the HDF5 library cannot read it: " + failure.reason);
  }
}

struct Dataset;

/// A file in memory that is open in the library, for reading. Nothing is copied but what the
/// library reads.
class MemoryFile {
 public:
  /// Borrows both; `path` is for messages.
  MemoryFile(std::span<const std::byte> bytes, const std::filesystem::path& path);
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  operator hid_t() const { return *id_; }
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// Bytes before the file's own; its addresses count from there.
  [[nodiscard]] std::uint64_t user_block() const;
  /// Whether its addresses and lengths have eight bytes, as in all files but some rare ones.
  [[nodiscard]] bool has_wide_addresses() const;
  /// Throws CorruptData if part of a dataset does not lie in the file.
  void check_range(const Dataset& dataset, std::uint64_t offset, std::uint64_t size) const;

 private:
  std::span<const std::byte> bytes_;
  const std::filesystem::path& path_;
  std::optional<Id> id_;
};

/// An open dataset with what is asked of it all the time.
struct Dataset {
  std::string name;
  Id id;
  Id type;
  Id create;  // its creation properties
  std::vector<std::uint64_t> extents;

  /// None if the product does not fit 64 bits.
  [[nodiscard]] std::optional<std::uint64_t> elements() const;
  /// Of one row; none if the product does not fit 64 bits.
  [[nodiscard]] std::optional<std::uint64_t> row_elements() const;
  [[nodiscard]] H5T_class_t type_class() const { return H5Tget_class(type); }
  [[nodiscard]] H5D_layout_t layout() const { return H5Pget_layout(create); }
  /// The extents of a chunk; empty if it is not stored in chunks.
  [[nodiscard]] std::vector<std::uint64_t> chunk() const;
  [[nodiscard]] bool lies_in_other_files() const;
  /// As in "shuffle", "gzip".
  [[nodiscard]] std::vector<std::string> filters() const;
  /// Those of them that this library does not have.
  [[nodiscard]] std::vector<std::string> missing_filters() const;
  /// Of its elements: "int32", "big-endian float64", "string[12]" …
  [[nodiscard]] std::string type_name() const;
  /// Where in the file its elements lie in one piece; none if they do not, or have no place yet.
  [[nodiscard]] std::optional<std::uint64_t> contiguous_offset() const;
};

/// Any dataset, whose extents may be none. REQUIRES: `name` is one.
[[nodiscard]] Dataset load_dataset(hid_t file, const std::string& name);

/// None if a group on the way, or `name` itself, is not there, is a link of another kind than hard,
/// or no dataset with extents.
[[nodiscard]] std::optional<Dataset> open_dataset(hid_t file, const std::string& name);

/// The names of all datasets that hard links lead to, within limits that no file of images needs.
[[nodiscard]] std::vector<std::string> dataset_names(hid_t file);

}  // namespace precache::hdf5
