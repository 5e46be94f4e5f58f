// SPDX-License-Identifier: Apache-2.0
#include "formats/bytes/crc32c.hpp"

#include <fmt/format.h>
#include <isa-l/crc.h>

#include <algorithm>

#include "formats/bytes/text.hpp"

namespace precache::crc32c {
namespace {

// Polynomials over GF(2) modulo the Castagnoli polynomial, bit-reflected: bit 31 is the coefficient
// of x^0.
constexpr std::uint32_t kPolynomial = 0x82f63b78U;

constexpr std::uint32_t multiply(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product = 0;
  for (std::uint32_t bit = 0x80000000U; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) product ^= b;
    b = (b & 1U) != 0 ? (b >> 1) ^ kPolynomial : b >> 1;
  }
  return product;
}

// x^(8 * bytes): what a CRC is multiplied by when that many zero bytes follow.
std::uint32_t shift_by_bytes(std::uint64_t bytes) {
  std::uint32_t result = 0x80000000U;  // x^0
  std::uint32_t power = 0x00800000U;   // x^8
  for (; bytes != 0; bytes >>= 1) {
    if ((bytes & 1U) != 0) result = multiply(result, power);
    power = multiply(power, power);
  }
  return result;
}

}  // namespace

std::uint32_t value(std::span<const std::byte> bytes) { return extend(0, bytes); }

std::uint32_t extend(std::uint32_t crc, std::span<const std::byte> bytes) {
  std::uint32_t state = ~crc;
  while (!bytes.empty()) {
    const auto part =
        bytes.first(std::min<std::size_t>(bytes.size(), 1U << 30));  // ISA-L counts in int
    auto* data = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(part.data()));
    state = crc32_iscsi(data, static_cast<int>(part.size()), state);
    bytes = bytes.subspan(part.size());
  }
  return ~state;
}

std::uint32_t combine(std::uint32_t crc_a, std::uint32_t crc_b, std::uint64_t size_b) {
  return multiply(shift_by_bytes(size_b), crc_a) ^ crc_b;
}

BlockCombiner::BlockCombiner(std::uint64_t block_bytes) : shift_(shift_by_bytes(block_bytes)) {}

std::uint32_t BlockCombiner::append(std::uint32_t running, std::uint32_t block_crc) const {
  return multiply(shift_, running) ^ block_crc;
}

std::string text(std::uint32_t crc) { return fmt::format("{:08x}", crc); }

std::optional<std::uint32_t> parse(std::string_view text) {
  return text.size() == 8 ? parse_number<std::uint32_t>(text, 16) : std::nullopt;
}

}  // namespace precache::crc32c
