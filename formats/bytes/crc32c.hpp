// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

/// CRC-32C (Castagnoli), the checksum of TFRecord and of precache manifests.
namespace precache::crc32c {

[[nodiscard]] std::uint32_t value(std::span<const std::byte> bytes);

/// The CRC of A followed by `bytes`, from crc(A).
[[nodiscard]] std::uint32_t extend(std::uint32_t crc, std::span<const std::byte> bytes);

/// The CRC of A followed by B, from crc(A), crc(B) and the size of B.
[[nodiscard]] std::uint32_t combine(std::uint32_t crc_a, std::uint32_t crc_b, std::uint64_t size_b);

/// Appends blocks of one fixed size to a running CRC: combine() with its power of x computed once.
class BlockCombiner {
 public:
  explicit BlockCombiner(std::uint64_t block_bytes);
  [[nodiscard]] std::uint32_t append(std::uint32_t running, std::uint32_t block_crc) const;

 private:
  std::uint32_t shift_;
};

/// TFRecord stores CRCs rotated and offset, so that a CRC of bytes that hold CRCs stays useful.
[[nodiscard]] constexpr std::uint32_t masked(std::uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8U;
}

/// The form in manifests: eight hexadecimal digits.
[[nodiscard]] std::string text(std::uint32_t crc);
[[nodiscard]] std::optional<std::uint32_t> parse(std::string_view text);

}  // namespace precache::crc32c
