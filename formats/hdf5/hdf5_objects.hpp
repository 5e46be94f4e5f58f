// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/hdf5/hdf5_id.hpp"

// The objects of third-party files. All functions throw LibraryFailure, and need with_library()
// around them.
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

/// A file in memory that is open in the library for reading, without a copy of the whole.
class MemoryFile {
 public:
  /// Borrows both; `path` is for messages.
  MemoryFile(std::span<const std::byte> bytes, const std::filesystem::path& path);
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  operator hid_t() const { return *id_; }
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  /// The number of bytes before the HDF5 content. Addresses count from there.
  [[nodiscard]] std::uint64_t user_block() const;
  /// Whether its addresses and lengths have eight bytes, as in all but a few rare files.
  [[nodiscard]] bool has_wide_addresses() const;
  /// Throws CorruptData if part of a dataset is outside of the file.
  void check_range(const Dataset& dataset, std::uint64_t offset, std::uint64_t size) const;

 private:
  std::span<const std::byte> bytes_;
  const std::filesystem::path& path_;
  std::optional<Id> id_;
};

/// An open dataset with its most used properties.
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
  /// The extents of a chunk; empty if the dataset is not stored in chunks.
  [[nodiscard]] std::vector<std::uint64_t> chunk() const;
  [[nodiscard]] bool is_in_other_files() const;
  /// As in "shuffle", "gzip".
  [[nodiscard]] std::vector<std::string> filters() const;
  /// The filters that this library does not have.
  [[nodiscard]] std::vector<std::string> missing_filters() const;
  /// Of its elements: "int32", "big-endian float64", "string[12]" …
  [[nodiscard]] std::string type_name() const;
  /// The offset of its elements in the file; none if they are not contiguous or not allocated yet.
  [[nodiscard]] std::optional<std::uint64_t> contiguous_offset() const;
};

/// Opens any dataset, also one without extents.  REQUIRES: `name` is a dataset.
[[nodiscard]] Dataset load_dataset(hid_t file, const std::string& name);

/// None if a group of the path or `name` itself does not exist or is not a hard link, or if `name`
/// is not a dataset with extents.
[[nodiscard]] std::optional<Dataset> open_dataset(hid_t file, const std::string& name);

/// The names of all datasets that are reached by hard links, up to limits that files of images do
/// not reach.
[[nodiscard]] std::vector<std::string> dataset_names(hid_t file);

/// Allocates items of variable length up to kLargestEncodedImage, so that a hostile file cannot
/// make the library allocate more.
class ItemMemory {
 public:
  ItemMemory();
  operator hid_t() const { return list_; }

 private:
  Id list_;
};

/// Reads rows as numbers of `type`; as they are stored if it is the type of the dataset.  REQUIRES:
/// `into` has room for them.
void read_rows(const Dataset& dataset, hid_t type, std::uint64_t first, std::uint64_t count,
               void* into);

/// Reads one item of variable length: bytes or text.
[[nodiscard]] std::vector<std::byte> read_item(const Dataset& dataset, std::uint64_t row,
                                               const ItemMemory& memory);

}  // namespace precache::hdf5
