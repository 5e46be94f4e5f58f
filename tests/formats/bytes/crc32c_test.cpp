// SPDX-License-Identifier: Apache-2.0
#include "formats/bytes/crc32c.hpp"

#include "tests/support/bytes.hpp"
#include "tests/support/catch.hpp"

namespace precache {
namespace {

using test::Bytes;
using test::Random;

// Computes the CRC bit by bit, from its definition.
std::uint32_t slow_crc(std::span<const std::byte> bytes) {
  std::uint32_t state = ~0U;
  for (const std::byte byte : bytes) {
    state ^= std::to_integer<std::uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) state = state >> 1 ^ (state & 1U ? 0x82f63b78U : 0U);
  }
  return ~state;
}

TEST_CASE("crc32c has the values that RFC 3720 lists", "[formats][crc32c][golden]") {
  CHECK(crc32c::value({}) == 0);
  CHECK(crc32c::value(test::bytes_of("123456789")) == 0xe3069283U);
  CHECK(crc32c::value(test::bytes_of("a")) == 0xc1d04330U);
  CHECK(crc32c::value(Bytes(32, std::byte{0})) == 0x8a9136aaU);
  CHECK(crc32c::value(Bytes(32, std::byte{0xff})) == 0x62a8ab43U);
  Bytes ascending(32);
  for (std::size_t i = 0; i < ascending.size(); ++i) ascending[i] = static_cast<std::byte>(i);
  CHECK(crc32c::value(ascending) == 0x46dd794eU);
  CHECK(crc32c::value(Bytes(ascending.rbegin(), ascending.rend())) == 0x113fdb5cU);
}

TEST_CASE("crc32c of any size and alignment follows the definition", "[formats][crc32c]") {
  Random random(1);
  const Bytes bytes = test::random_bytes(random, 5000);
  const std::span<const std::byte> all = bytes;
  for (std::size_t size = 0; size < 600; ++size) {
    const auto part = all.subspan(size % 67, size);
    CAPTURE(size);
    REQUIRE(crc32c::value(part) == slow_crc(part));
  }
  CHECK(crc32c::value(all) == slow_crc(all));
}

TEST_CASE("crc32c combine gives the crc of the concatenation", "[formats][crc32c]") {
  Random random(2);
  const Bytes bytes = test::random_bytes(random, 4096);
  const std::span<const std::byte> all = bytes;
  for (int i = 0; i < 500; ++i) {
    const auto size_a = test::below(random, 2000);
    const auto size_b = test::below(random, 2000);
    const auto a = all.subspan(0, size_a);
    const auto b = all.subspan(size_a, size_b);
    CAPTURE(size_a, size_b);
    REQUIRE(crc32c::combine(crc32c::value(a), crc32c::value(b), size_b) ==
            crc32c::value(all.first(size_a + size_b)));
  }
  const std::uint32_t crc = crc32c::value(all);
  CHECK(crc32c::combine(crc, 0, 0) == crc);
  CHECK(crc32c::combine(0, crc, all.size()) == crc);
}

TEST_CASE("crc32c combine is associative for sizes beyond 32 bits", "[formats][crc32c]") {
  const std::uint32_t a = 0x12345678;
  const std::uint32_t b = 0x9abcdef0;
  const std::uint32_t c = 0x0badcafe;
  const std::uint64_t size_b = (std::uint64_t{1} << 40) + 17;
  const std::uint64_t size_c = (std::uint64_t{1} << 62) + 3;
  const std::uint32_t left = crc32c::combine(crc32c::combine(a, b, size_b), c, size_c);
  const std::uint32_t right = crc32c::combine(a, crc32c::combine(b, c, size_c), size_b + size_c);
  CHECK(left == right);
}

TEST_CASE("crc32c BlockCombiner appends as combine does", "[formats][crc32c]") {
  Random random(3);
  for (const std::size_t block :
       {std::size_t{1}, std::size_t{7}, std::size_t{64}, std::size_t{1000}}) {
    CAPTURE(block);
    const Bytes bytes = test::random_bytes(random, block * 20);
    const std::span<const std::byte> all = bytes;
    const crc32c::BlockCombiner combiner(block);
    std::uint32_t running = 0;
    for (std::size_t i = 0; i < 20; ++i) {
      const std::uint32_t crc = crc32c::value(all.subspan(i * block, block));
      CHECK(combiner.append(running, crc) == crc32c::combine(running, crc, block));
      running = combiner.append(running, crc);
      REQUIRE(running == crc32c::value(all.first((i + 1) * block)));
    }
  }
}

TEST_CASE("crc32c masked rotates and offsets as TFRecord does", "[formats][crc32c][golden]") {
  static_assert(crc32c::masked(0) == 0xa282ead8U);
  CHECK(crc32c::masked(0x8000U) == 0xa282ead9U);
  CHECK(crc32c::masked(1) == 0xa282ead8U + (1U << 17));
  CHECK(crc32c::masked(0xffffffffU) == 0xa282ead7U);
  // The header of a TFRecord of length 24, as TensorFlow writes it.
  const std::uint32_t crc = crc32c::value(test::bytes_of({"\x18\0\0\0\0\0\0\0", 8}));
  CHECK(crc32c::masked(crc) == ((crc >> 15 | crc << 17) + 0xa282ead8U));
  CHECK(crc32c::masked(crc) != crc);
}

}  // namespace
}  // namespace precache
