// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

/// The loops of a blur, compiled for each instruction set, with the same results on all.
/// Thread-safe.
namespace precache::augment {

/// One half of a symmetric kernel: the weight of the middle, then those 1, 2, ... pixels away.
using HalfKernel = std::span<const float>;

/// out[x] = weighted sum of rows[-n][x], ..., rows[n][x] for n = kernel.size() - 1.
void blur_across_rows(const std::uint8_t* const* rows, HalfKernel kernel, float* out,
                      std::size_t width);
/// out[x] = weighted sum of row[x - n], ..., row[x + n], rounded half to even.
/// REQUIRES: `row` has n floats before and after.
void blur_along_row(const float* row, HalfKernel kernel, std::uint8_t* out, std::size_t width);

}  // namespace precache::augment
