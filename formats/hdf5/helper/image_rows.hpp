// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/shard/pixel_array.hpp"

namespace precache::hdf5 {

inline constexpr std::uint64_t kLargestRow = std::uint64_t{1} << 30;

/// The images of a file with their labels, keys and class names, for any kind of storage.
struct ImageRows {
  std::string name;  // of the dataset
  std::uint64_t count = 0;
  std::optional<PixelArray> array;  // none: each row is an image file
  std::uint64_t row_bytes = 0;      // 0 if lengths differ
  /// The offset of the rows, if they are contiguous and of the wanted type; else read_rows() must
  /// read them.
  std::optional<std::uint64_t> offset;
  std::vector<std::string> labels;   // numbers or names, or none
  std::string maybe_labels;          // if there are none: datasets that may be meant
  std::vector<std::string> keys;     // or none
  std::vector<std::string> classes;  // or none
};

}  // namespace precache::hdf5
