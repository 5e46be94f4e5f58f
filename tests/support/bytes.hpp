// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace precache::test {

using Bytes = std::vector<std::byte>;

inline Bytes bytes_of(std::string_view text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The first `size` bytes in memory of just that size, so that AddressSanitizer sees one byte too
/// far.
inline Bytes cut(std::span<const std::byte> bytes, std::size_t size) {
  return {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)};
}

inline std::uint64_t little_endian(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    value = value << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  }
  return value;
}

inline bool all_zero(std::span<const std::byte> bytes) {
  for (const std::byte byte : bytes) {
    if (byte != std::byte{0}) return false;
  }
  return true;
}

using Random = std::mt19937_64;

/// A number of [0, end).
inline std::uint64_t below(Random& random, std::uint64_t end) { return random() % end; }

inline Bytes random_bytes(Random& random, std::size_t size) {
  Bytes bytes(size);
  for (auto& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

inline std::vector<std::uint8_t> random_octets(Random& random, std::size_t size) {
  std::vector<std::uint8_t> octets(size);
  for (auto& octet : octets) octet = static_cast<std::uint8_t>(random());
  return octets;
}

}  // namespace precache::test
