// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

/// Loops over the pixels of planes, compiled for each instruction set. The results equal the
/// definitions in colour_body.hpp on all of them. Thread-safe.
namespace precache::augment {

/// Three planes with as many pixels each.
struct Planes {
  std::uint8_t* r;
  std::uint8_t* g;
  std::uint8_t* b;
  std::size_t size;
};

struct Extrema {
  std::uint8_t low;
  std::uint8_t high;
};

/// blend() of every byte, from one grey.
void blend_from_grey(std::uint8_t* bytes, std::size_t size, std::uint8_t grey, float factor);
/// blend() of every byte, from that of `from` at the same place; `from` gets the results.
void blend_from_image(std::uint8_t* from, const std::uint8_t* bytes, std::size_t size,
                      float factor);
/// blend() of every pixel, from its luma().
void blend_from_luma(const Planes& planes, float factor);
/// Replaces every pixel by its luma().
void replace_by_luma(const Planes& planes);
[[nodiscard]] std::uint64_t sum_of_luma(const Planes& planes);
[[nodiscard]] std::uint64_t sum_of_bytes(const std::uint8_t* bytes, std::size_t size);
/// REQUIRES: size > 0.
[[nodiscard]] Extrema extrema_of(const std::uint8_t* bytes, std::size_t size);
/// Adds to the hue of every pixel, modulo 256.
void shift_hue(const Planes& planes, std::uint8_t shift);
/// Replaces every byte by its entry.
void look_up(std::uint8_t* bytes, std::size_t size, const std::array<std::uint8_t, 256>& table);
/// Keeps the bits of `mask`.
void keep_bits(std::uint8_t* bytes, std::size_t size, std::uint8_t mask);
/// Inverts the bytes from `threshold` up, which is at most 256.
void invert_from(std::uint8_t* bytes, std::size_t size, std::uint32_t threshold);
/// smooth() of a row, without its first and last pixel.
void smooth_row(const std::uint8_t* above, const std::uint8_t* row, const std::uint8_t* below,
                std::uint8_t* out, std::size_t width);

}  // namespace precache::augment
