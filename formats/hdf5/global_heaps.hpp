// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <unordered_map>
#include <vector>

namespace precache::hdf5 {

/// The heaps of variable-length data, each a collection of objects. An element of such a dataset is
/// a reference of 16 bytes to one of them (III.E and IV.A.2.d of the HDF5 file format
/// specification, 3.0):
///
///   0  length, in elements of the base type
///   4  address of the collection
///   12 number of the object in it
///
/// Parses bytes that the library has not checked, so it checks everything itself.  REQUIRES: the
/// file has addresses and lengths of eight bytes.
class GlobalHeaps {
 public:
  static constexpr std::uint64_t kReferenceBytes = 16;

  /// Borrows both. Addresses count from `base`.
  GlobalHeaps(std::span<const std::byte> file, std::uint64_t base,
              const std::filesystem::path& path)
      : file_(file), base_(base), path_(path) {}

  struct Extent {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
  };
  /// The bytes that the reference at `offset` refers to, for a base type of one byte; empty, at
  /// `offset`, if its length is 0. Throws CorruptData.  REQUIRES: the reference is inside the file.
  [[nodiscard]] Extent follow(std::uint64_t offset);

 private:
  struct Object {
    std::uint64_t number = 0;
    Extent extent;
  };
  [[nodiscard]] const std::vector<Object>& collection(std::uint64_t address,
                                                      std::uint64_t reference);
  [[nodiscard]] std::vector<Object> read_collection(std::uint64_t offset, std::uint64_t size) const;

  std::span<const std::byte> file_;
  std::uint64_t base_;
  const std::filesystem::path& path_;
  std::unordered_map<std::uint64_t, std::vector<Object>> collections_;  // by address
  std::uint64_t collection_bytes_ = 0;                                  // of all of them
};

}  // namespace precache::hdf5
