// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

/// Protobuf's numbers of variable length: seven bits in each byte, the lowest first.
namespace precache {

struct Varint {
  std::uint64_t value = 0;
  std::size_t bytes = 0;
};

/// The varint at the start of `bytes`; none if it has no end there, or more than ten bytes.
[[nodiscard]] inline std::optional<Varint> read_varint(std::span<const std::byte> bytes) {
  constexpr std::size_t kLongest = 10;  // of the tenth byte, one bit counts
  Varint varint;
  while (varint.bytes < kLongest && varint.bytes < bytes.size()) {
    const auto byte = std::to_integer<std::uint64_t>(bytes[varint.bytes]);
    varint.value |= (byte & 0x7fU) << 7 * varint.bytes++;
    if (byte < 0x80U) return varint;
  }
  return std::nullopt;
}

[[nodiscard]] constexpr int varint_bytes(std::uint64_t value) {
  int bytes = 1;
  for (; value >= 0x80; value >>= 7) ++bytes;
  return bytes;
}

/// Writes `width` bytes. A varint may be longer than it has to be: protobuf parsers accept
/// continuation bits before zeros.  REQUIRES: width >= varint_bytes(value).
template <typename Out>
Out put_varint(Out out, std::uint64_t value, int width) {
  for (int i = 1; i < width; ++i, value >>= 7) *out++ = static_cast<char>(value | 0x80U);
  *out++ = static_cast<char>(value);
  return out;
}

}  // namespace precache
