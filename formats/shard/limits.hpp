// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

/// One limit for all formats, so that readers and builds refuse the same files.
namespace precache {

/// The longest text, in bytes, that names a class. Longer texts are captions.
inline constexpr std::size_t kLongestLabel = 256;

/// The longest name of a sample in a third-party shard. File systems have no longer paths.
inline constexpr std::size_t kLongestKey = 4096;

/// The longest side of a tensor or a mask, in pixels.
inline constexpr std::uint32_t kLargestTensorSide = 16384;

/// The longest name of an object in a third-party HDF5 file.
inline constexpr std::size_t kLongestObjectName = 4096;

/// The largest encoded image of a source, and the largest item of variable length in an HDF5 file.
inline constexpr std::size_t kLargestEncodedImage = std::size_t{256} << 20;

/// No byte of gzip, zlib or another filter unpacks to more bytes than this.
inline constexpr std::uint64_t kLargestInflation = 1100;

}  // namespace precache
