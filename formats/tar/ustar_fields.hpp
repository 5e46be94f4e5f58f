// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

/// Offsets and widths of a tar header's fields. docs/formats/tar.md has the whole.
namespace precache::ustar {

inline constexpr std::size_t kNameBytes = 100;
inline constexpr std::size_t kMode = 100;
inline constexpr std::size_t kUid = 108;
inline constexpr std::size_t kGid = 116;
inline constexpr std::size_t kSize = 124;
inline constexpr std::size_t kSizeBytes = 12;
inline constexpr std::size_t kMtime = 136;
inline constexpr std::size_t kChecksum = 148;
inline constexpr std::size_t kChecksumBytes = 8;
inline constexpr std::size_t kType = 156;
inline constexpr std::size_t kLink = 157;
inline constexpr std::size_t kLinkBytes = 100;
inline constexpr std::size_t kMagic = 257;
inline constexpr std::size_t kDevMajor = 329;
inline constexpr std::size_t kDevMinor = 337;
inline constexpr std::size_t kDevBytes = 8;
// Device numbers mean nothing in a regular file or a pax header, but every reader takes octal
// digits there. In a precache header each field holds this digit and then sixteen bits of a
// CRC-32C.
inline constexpr char kDataCrcMark = '7';
inline constexpr std::size_t kPrefix = 345;
inline constexpr std::size_t kPrefixBytes = 155;

}  // namespace precache::ustar
