// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

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
inline constexpr std::size_t kPrefix = 345;
inline constexpr std::size_t kPrefixBytes = 155;
// ustar ends here; in entries of ours the rest of the block is a mark and a CRC-32C in hexadecimal.
inline constexpr std::size_t kDataCrcMark = 500;
inline constexpr std::string_view kDataCrcMarkText = "c32c";
inline constexpr std::size_t kDataCrc = 504;
inline constexpr std::size_t kDataCrcBytes = 8;

}  // namespace precache::ustar
