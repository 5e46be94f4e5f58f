// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "formats/hdf5/hdf5_objects.hpp"

// Reading rows through the library. All of it throws LibraryFailure, and needs with_library()
// around it.
namespace precache::hdf5 {

/// The largest item of various length.
inline constexpr std::size_t kLargestItem = std::size_t{256} << 20;

/// Items of various lengths get memory from us, so that a file's word alone gets none.
class ItemMemory {
 public:
  ItemMemory();
  operator hid_t() const { return list_; }

 private:
  Id list_;
};

/// Reads rows as numbers of `type`, or as they are stored if it is the dataset's.  REQUIRES: `into`
/// has room for them.
void read_rows(const Dataset& dataset, hid_t type, std::uint64_t first, std::uint64_t count,
               void* into);

/// One item of various length: bytes, or text.
[[nodiscard]] std::vector<std::byte> read_item(const Dataset& dataset, std::uint64_t row,
                                               const ItemMemory& memory);

}  // namespace precache::hdf5
