// SPDX-License-Identifier: Apache-2.0
#include "formats/bytes/half_float.hpp"

#include <bit>
#include <cmath>

#include "tests/support/catch.hpp"

namespace precache {
namespace {

/// The value that IEEE 754 gives to the bits of a small float.
float value_of(std::uint32_t bits, int mantissa_bits, int exponent_bits) {
  const std::uint32_t mantissa = bits & ((1U << mantissa_bits) - 1);
  const std::uint32_t exponent = bits >> mantissa_bits & ((1U << exponent_bits) - 1);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  double value = 0;
  if (exponent == (1U << exponent_bits) - 1) {
    value = mantissa == 0 ? INFINITY : NAN;
  } else if (exponent == 0) {
    value = std::ldexp(mantissa, 1 - bias - mantissa_bits);
  } else {
    value = std::ldexp(mantissa + (1U << mantissa_bits),
                       static_cast<int>(exponent) - bias - mantissa_bits);
  }
  return static_cast<float>((bits & 0x8000U) != 0 ? -value : value);
}

/// Compares value and sign; a NaN must stay a NaN.
bool is_same(float a, float b) {
  if (std::isnan(b)) return std::isnan(a);
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

TEST_CASE("every float16 has the value of its bits and comes back", "[formats][half]") {
  std::size_t wrong_values = 0;
  std::size_t wrong_ways_back = 0;
  for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const float value = from_float16(static_cast<std::uint16_t>(bits));
    wrong_values += is_same(value, value_of(bits, 10, 5)) ? 0 : 1;
    // All NaNs come back as the quiet NaN of their sign.
    const std::uint32_t back = std::isnan(value) ? (bits & 0x8000U) | 0x7e00U : bits;
    wrong_ways_back += to_float16(value) == back ? 0 : 1;
  }
  CHECK(wrong_values == 0);
  CHECK(wrong_ways_back == 0);
}

TEST_CASE("every bfloat16 has the value of its bits and comes back", "[formats][half]") {
  std::size_t wrong_values = 0;
  std::size_t wrong_ways_back = 0;
  for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const float value = from_bfloat16(static_cast<std::uint16_t>(bits));
    wrong_values += is_same(value, value_of(bits, 7, 8)) ? 0 : 1;
    const std::uint32_t back = std::isnan(value) ? bits | 0x40U : bits;  // NaNs become quiet
    wrong_ways_back += to_bfloat16(value) == back ? 0 : 1;
  }
  CHECK(wrong_values == 0);
  CHECK(wrong_ways_back == 0);
}

TEST_CASE("the sign of a NaN survives both types", "[formats][half]") {
  for (const std::uint32_t bits : {0x7f800001U, 0x7fc00000U, 0xff800001U, 0xffffffffU}) {
    CAPTURE(bits);
    const auto value = std::bit_cast<float>(bits);
    CHECK(to_float16(value) >> 15 == bits >> 31);
    CHECK(to_bfloat16(value) >> 15 == bits >> 31);
    CHECK(std::isnan(from_float16(to_float16(value))));
    CHECK(std::isnan(from_bfloat16(to_bfloat16(value))));
  }
}

}  // namespace
}  // namespace precache
