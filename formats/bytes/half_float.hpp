// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "formats/bytes/host_device.hpp"

/// float32 to 16 bits, rounded to nearest even as IEEE 754 and every framework do, and back.
///
/// Computed with integers, on GPUs too: their own instructions give other bits for NaN.
namespace precache {

// Device code can call the builtin, but not std::bit_cast.
PRECACHE_HOST_DEVICE inline std::uint32_t bits_of(float value) {
  return __builtin_bit_cast(std::uint32_t, value);
}

PRECACHE_HOST_DEVICE inline float float_of(std::uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}

PRECACHE_HOST_DEVICE inline std::uint16_t to_bfloat16(float value) {
  const std::uint32_t bits = bits_of(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<std::uint16_t>(bits >> 16 | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
}

PRECACHE_HOST_DEVICE inline std::uint16_t to_float16(float value) {
  const std::uint32_t bits = bits_of(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) return sign | 0x7e00U;
  if (magnitude >= 0x477ff000U) return sign | 0x7c00U;  // rounds to 2^16: infinity
  if (magnitude < 0x38800000U) {                        // below 2^-14: subnormal, in units of 2^-24
    const float scaled = float_of(magnitude) * 0x1p24F;
    return static_cast<std::uint16_t>(sign | static_cast<std::uint32_t>(nearbyintf(scaled)));
  }
  const std::uint32_t rebased = magnitude - (112U << 23);  // exponent bias 127 to 15
  return static_cast<std::uint16_t>(sign | (rebased + 0xfffU + (rebased >> 13 & 1U)) >> 13);
}

PRECACHE_HOST_DEVICE inline float from_bfloat16(std::uint16_t bits) {
  return float_of(std::uint32_t{bits} << 16);
}

PRECACHE_HOST_DEVICE inline float from_float16(std::uint16_t bits) {
  const std::uint32_t sign = (bits & 0x8000U) << 16;
  const std::uint32_t magnitude = bits & 0x7fffU;
  if (magnitude >= 0x7c00U) return float_of(sign | 0x7f800000U | magnitude << 13);
  if (magnitude < 0x0400U) {  // subnormal, in units of 2^-24
    const float value = static_cast<float>(magnitude) * 0x1p-24F;
    return sign != 0 ? -value : value;
  }
  return float_of(sign | (magnitude + (112U << 10)) << 13);
}

}  // namespace precache
