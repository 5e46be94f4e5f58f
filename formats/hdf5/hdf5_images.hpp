// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>

#include "formats/hdf5/helper/image_rows.hpp"
#include "formats/shard/sample_keys.hpp"

namespace precache::hdf5 {

/// Finds arrays of images (N x H x W x C, N x C x H x W or N x H x W numbers of any type) or
/// encoded images (of various lengths, or in rows of one), and their labels, keys and class names.
///
/// Throws InvalidArgument if the keys do not fit the file or are needed to choose, Unsupported if
/// it has no images that can be read, CorruptData.
[[nodiscard]] ImageRows find_images(std::span<const std::byte> file,
                                    const std::filesystem::path& path, const SampleKeys& keys);

/// Hands over the bytes of all rows in their order, one or more whole rows at a time; if they are
/// of various lengths, one. Throws CorruptData.
void read_rows(std::span<const std::byte> file, const std::filesystem::path& path,
               const ImageRows& rows, const std::function<void(std::span<const std::byte>)>& take);

/// Reads all images, labels, keys and class names, so that filters and checksums tell what is
/// broken. Returns how many images there are. Throws Unsupported and CorruptData.
[[nodiscard]] std::uint64_t check_images(std::span<const std::byte> file,
                                         const std::filesystem::path& path);

}  // namespace precache::hdf5
