// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

/// The POSIX ustar header block and the pax header that carries names it cannot hold.
namespace precache::ustar {

inline constexpr std::size_t kBlock = 512;
/// Every entry of ours is KEY + ".npy" or KEY + ".cls".
inline constexpr std::size_t kSuffixBytes = 4;

/// Whether a path of `path_bytes` bytes whose slashes are those of `key` fits the name and prefix
/// fields.
[[nodiscard]] bool fits(std::size_t path_bytes, std::string_view key);

/// A name of at most `bytes` bytes that stands for a longer one: its first bytes, `~` and the
/// CRC-32C of the whole, so that different names stay different. It has no dot after its last
/// slash.  REQUIRES: bytes >= 9.
[[nodiscard]] std::string shortened(std::string_view name, std::size_t bytes);

/// Writes a header block for a regular file, owned by nobody, of the epoch. A path that does not
/// fit is shortened, but for its extension; a pax header before it then has the whole. `data_crc`
/// is the CRC-32C of the blocks after it: `size` bytes, and the zeros that fill the last block.
void write_header(std::span<std::byte> block, std::string_view path, std::uint64_t size,
                  std::uint32_t data_crc);

/// Blocks of pax data that hold the path of `longest_path` bytes, filled up with a comment.
[[nodiscard]] std::size_t pax_data_blocks(std::size_t longest_path);

/// Writes a pax header block and its data; `bytes` is (1 + pax_data_blocks) blocks for every path
/// of a dataset.
void write_pax(std::span<std::byte> bytes, std::string_view path);

}  // namespace precache::ustar
