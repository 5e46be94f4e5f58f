// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>

#include "formats/hdf5/helper/image_rows.hpp"
#include "formats/shard/shard_index.hpp"
#include "precache/formats/contents.hpp"

// Everything that reads HDF5 files through the HDF5 library. Programs that do not link it ask the
// helper process (helper/helper_client.hpp).
//
// The library reads `file`, which is in memory; `path` is for messages. Links to other files are
// not followed. All functions throw CorruptData if the library cannot read the file.
namespace precache::hdf5 {

/// Lists the groups, datasets and links of a file. Names soft and external links without following
/// them, and does not read elements. A single object that the library cannot open is listed as
/// unreadable.
[[nodiscard]] Hdf5Contents survey(std::span<const std::byte> file,
                                  const std::filesystem::path& path);

/// Finds the place of every row of the image dataset, in precache and third-party files.
///
/// The dataset is `/images`, or one of other usual names, or the only one with three or four axes.
/// Throws Unsupported if rows are not stored as they are in memory (filters, rows split over
/// several chunks, big-endian numbers, other files), and InvalidArgument if the file does not have
/// the datasets that `keys` names.
[[nodiscard]] ShardIndex scan(std::span<const std::byte> file, const std::filesystem::path& path,
                              const SampleKeys& keys = {});

/// Finds arrays of images (N x H x W x C, N x C x H x W or N x H x W numbers of any type) or
/// encoded images (of various lengths, or in rows of one length), and their labels, keys and class
/// names.
///
/// Throws InvalidArgument if the file does not have the datasets that `keys` names or if keys are
/// needed to choose between datasets, Unsupported if it has no images that can be read.
[[nodiscard]] ImageRows find_images(std::span<const std::byte> file,
                                    const std::filesystem::path& path, const SampleKeys& keys);

/// Calls `take` with the bytes of all rows in their order, one or more whole rows at a time; if
/// rows have various lengths, one at a time.
void read_rows(std::span<const std::byte> file, const std::filesystem::path& path,
               const ImageRows& rows, const std::function<void(std::span<const std::byte>)>& take);

/// Reads all images, labels, keys and class names, so that filters and checksums can find damage.
/// Returns the number of images. Throws Unsupported.
[[nodiscard]] std::uint64_t check_images(std::span<const std::byte> file,
                                         const std::filesystem::path& path);

}  // namespace precache::hdf5
