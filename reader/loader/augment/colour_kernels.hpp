// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "reader/loader/augment/planar_image.hpp"

/// Loops over the pixels of planes, compiled for each instruction set. The results equal the
/// definitions in colour_body.hpp on all of them. Thread-safe.
namespace precache::augment {

struct Extrema {
  std::uint8_t low;
  std::uint8_t high;
};

[[nodiscard]] std::uint64_t sum_of_bytes(const std::uint8_t* bytes, std::size_t size);
/// REQUIRES: size > 0.
[[nodiscard]] Extrema extrema_of(const std::uint8_t* bytes, std::size_t size);
/// Adds to the hue of every pixel, modulo 256.
void shift_hue(const Planes& planes, std::uint8_t shift);
/// Keeps the bits of `mask`.
void keep_bits(std::uint8_t* bytes, std::size_t size, std::uint8_t mask);
/// Inverts the bytes from `threshold` up, which is at most 256.
void invert_from(std::uint8_t* bytes, std::size_t size, std::uint32_t threshold);
/// smooth() of a row, without its first and last pixel.
void smooth_row(const std::uint8_t* above, const std::uint8_t* row, const std::uint8_t* below,
                std::uint8_t* out, std::size_t width);

}  // namespace precache::augment
