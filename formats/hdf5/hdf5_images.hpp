// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/shard/pixel_array.hpp"

namespace precache::hdf5 {

/// The images of a file and what stands beside them, whatever the storage.
struct ImageRows {
  std::string name;  // of the dataset
  std::uint64_t count = 0;
  std::optional<PixelArray> array;  // none: each row is an image file
  std::uint64_t row_bytes = 0;      // 0 if they are of various lengths
  /// Where the rows lie one after another, as they are wanted; none: they have to be read by
  /// read_rows().
  std::optional<std::uint64_t> offset;
  std::vector<std::string> labels;   // numbers or names, or none
  std::string mismatched_labels;     // what is called so and has not one for each row
  std::string maybe_labels;          // integers whose name does not say what they are
  std::vector<std::string> keys;     // or none
  std::vector<std::string> classes;  // or none
};

/// Finds arrays of images (N x H x W x C, N x C x H x W or N x H x W numbers of any type) or
/// encoded images (of various lengths, or in rows of one), by the names of their datasets or by
/// what they are. Names that are empty are guessed.
///
/// Throws InvalidArgument if the names do not fit the file, Unsupported if it has no images or more
/// than one dataset may be them, CorruptData.
[[nodiscard]] ImageRows find_images(std::span<const std::byte> file,
                                    const std::filesystem::path& path,
                                    const std::string& image_name, const std::string& label_name);

/// Hands over the bytes of all rows in their order, one or more whole rows at a time; if they are
/// of various lengths, one. Throws CorruptData.
void read_rows(std::span<const std::byte> file, const std::filesystem::path& path,
               const ImageRows& rows, const std::function<void(std::span<const std::byte>)>& take);

/// Reads all images, and what stands beside them, so that filters and checksums tell what is
/// broken. Returns how many images there are. Throws Unsupported and CorruptData.
[[nodiscard]] std::uint64_t check_images(std::span<const std::byte> file,
                                         const std::filesystem::path& path);

}  // namespace precache::hdf5
