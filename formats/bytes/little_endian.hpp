// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace precache {

/// Reads a number of at most eight bytes.
[[nodiscard]] inline std::uint64_t little_endian(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    value = value << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  }
  return value;
}

template <typename Out>
Out put_little_endian(Out out, std::uint64_t value, int bytes) {
  for (; bytes > 0; --bytes, value >>= 8) *out++ = static_cast<char>(value);
  return out;
}

}  // namespace precache
