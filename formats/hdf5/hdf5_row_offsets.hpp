// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "formats/hdf5/hdf5_objects.hpp"

// Where the data of datasets lies, for mappings. All of it throws LibraryFailure, and needs
// with_library() around it.
namespace precache::hdf5 {

/// Throws Unsupported: a mapping cannot read the file.
[[noreturn]] void refuse_mapping(const MemoryFile& file, const std::string& reason);

/// Where the rows of a dataset lie: one after another from `base`, or in chunks of some.
struct RowOffsets {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;  // of one
  std::uint64_t base = 0;
  std::uint64_t rows_per_chunk = 0;
  std::vector<std::uint64_t> chunks;  // empty if the rows are contiguous

  [[nodiscard]] std::uint64_t offset(std::uint64_t row) const {
    if (chunks.empty()) return base + row * bytes;
    return chunks[row / rows_per_chunk] + row % rows_per_chunk * bytes;
  }
};

/// Finds the rows, whose elements take `element_bytes` each. Throws Unsupported for storage that no
/// mapping can read, and CorruptData.
[[nodiscard]] RowOffsets find_rows(const MemoryFile& file, const Dataset& dataset,
                                   std::uint64_t element_bytes);

}  // namespace precache::hdf5
