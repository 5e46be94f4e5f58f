// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "reader/loader/augment/planar_image.hpp"

/// Blends and lumas of whole planes, compiled for each instruction set. The results equal the
/// definitions in colour_body.hpp on all of them. Thread-safe.
namespace precache::augment {

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
/// Replaces every byte by its entry.
void look_up(std::uint8_t* bytes, std::size_t size, const std::array<std::uint8_t, 256>& table);

}  // namespace precache::augment
