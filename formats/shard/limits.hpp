// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

/// One limit per thing, for all formats: what a reader refuses, a build refuses too.
namespace precache {

/// The longest text, in bytes, that names a class; a longer one is a caption.
inline constexpr std::size_t kLongestLabel = 256;

/// The longest name of a sample in a third-party shard; paths are no longer than this.
inline constexpr std::size_t kLongestKey = 4096;

/// No byte of gzip, zlib or another filter unpacks to more than this many.
inline constexpr std::uint64_t kLargestInflation = 1100;

}  // namespace precache
