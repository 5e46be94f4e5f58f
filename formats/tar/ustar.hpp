// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

/// The POSIX ustar header block, and the pax header for names that do not fit in it.
namespace precache::ustar {

inline constexpr std::size_t kBlock = 512;
/// Entries of precache shards are KEY + ".npy" and KEY + ".cls".
inline constexpr std::size_t kSuffixBytes = 4;

/// Whether a path of `path_bytes` bytes whose slashes are those of `key` fits the name and prefix
/// fields.
[[nodiscard]] bool fits(std::size_t path_bytes, std::string_view key);

/// Shortens a name to at most `bytes` bytes: its first bytes, `~` and the CRC-32C of the whole
/// name, so that different names stay different. The result has no dot after its last slash.
/// REQUIRES: bytes >= 9.
[[nodiscard]] std::string shortened(std::string_view name, std::size_t bytes);

/// Writes a header block for a regular file with user and group 0 and the time 0. A path that does
/// not fit is shortened, except for its extension; a pax header before it must then have the whole
/// path. `data_crc` is the CRC-32C of the blocks after it: `size` bytes and the zeros that pad the
/// last block.
void write_header(std::span<std::byte> block, std::string_view path, std::uint64_t size,
                  std::uint32_t data_crc);

/// The number of blocks of pax data for a path of `longest_path` bytes, padded with a comment.
[[nodiscard]] std::size_t pax_data_blocks(std::size_t longest_path);

/// Writes a pax header block and its data. `bytes` is (1 + pax_data_blocks) blocks, the same for
/// every path of a dataset.
void write_pax(std::span<std::byte> bytes, std::string_view path);

// Offsets and widths of a header's fields. docs/formats/tar.md has the whole layout.
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
// Device numbers have no meaning in a regular file or a pax header, but every reader accepts octal
// digits there. In a precache header each field holds this digit and then sixteen bits of a
// CRC-32C.
inline constexpr char kDataCrcMark = '7';
inline constexpr std::size_t kPrefix = 345;
inline constexpr std::size_t kPrefixBytes = 155;

}  // namespace precache::ustar
