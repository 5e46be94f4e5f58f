// SPDX-License-Identifier: Apache-2.0
#include "reader/loader/augment/blur_kernels.hpp"

// This file is compiled once for each instruction set, but this part only once.
#ifndef PRECACHE_BLUR_KERNELS_COMMON
#define PRECACHE_BLUR_KERNELS_COMMON

#include <cmath>

#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reader/loader/augment/blur_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "reader/loader/augment/byte_lanes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace precache::augment::HWY_NAMESPACE {

// Sums of two pixels of the same weight first: they are exact. No fused multiply-adds, which not
// every machine has.

void across_rows(const std::uint8_t* const* rows, HalfKernel kernel, float* out,
                 std::size_t width) {
  const DFloat d;
  const std::size_t step = hn::Lanes(d);
  const auto reach = static_cast<std::ptrdiff_t>(kernel.size());
  std::size_t x = 0;
  for (; x + step <= width; x += step) {
    VFloat sum = hn::Mul(hn::Set(d, kernel[0]), hn::ConvertTo(d, load_ints(rows[0] + x)));
    for (std::ptrdiff_t n = 1; n < reach; ++n) {
      const auto pair = hn::Add(load_ints(rows[-n] + x), load_ints(rows[n] + x));
      sum = hn::Add(
          sum, hn::Mul(hn::Set(d, kernel[static_cast<std::size_t>(n)]), hn::ConvertTo(d, pair)));
    }
    hn::StoreU(sum, d, out + x);
  }
  for (; x < width; ++x) {
    float sum = kernel[0] * static_cast<float>(rows[0][x]);
    for (std::ptrdiff_t n = 1; n < reach; ++n) {
      sum += kernel[static_cast<std::size_t>(n)] * static_cast<float>(rows[-n][x] + rows[n][x]);
    }
    out[x] = sum;
  }
}

void along_row(const float* row, HalfKernel kernel, std::uint8_t* out, std::size_t width) {
  const DFloat d;
  const std::size_t step = hn::Lanes(d);
  const auto reach = static_cast<std::ptrdiff_t>(kernel.size());
  std::size_t x = 0;
  for (; x + step <= width; x += step) {
    const float* const at = row + x;
    VFloat sum = hn::Mul(hn::Set(d, kernel[0]), hn::LoadU(d, at));
    for (std::ptrdiff_t n = 1; n < reach; ++n) {
      const VFloat pair = hn::Add(hn::LoadU(d, at - n), hn::LoadU(d, at + n));
      sum = hn::Add(sum, hn::Mul(hn::Set(d, kernel[static_cast<std::size_t>(n)]), pair));
    }
    hn::StoreU(hn::DemoteTo(DByte(), hn::NearestInt(sum)), DByte(), out + x);
  }
  for (; x < width; ++x) {
    const float* const at = row + x;
    float sum = kernel[0] * at[0];
    for (std::ptrdiff_t n = 1; n < reach; ++n) {
      sum += kernel[static_cast<std::size_t>(n)] * (at[-n] + at[n]);
    }
    const float rounded = std::nearbyint(sum);
    out[x] = static_cast<std::uint8_t>(rounded > 255 ? 255 : rounded);
  }
}

}  // namespace precache::augment::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace precache::augment {

HWY_EXPORT(across_rows);
HWY_EXPORT(along_row);

void blur_across_rows(const std::uint8_t* const* rows, HalfKernel kernel, float* out,
                      std::size_t width) {
  HWY_DYNAMIC_DISPATCH(across_rows)(rows, kernel, out, width);
}

void blur_along_row(const float* row, HalfKernel kernel, std::uint8_t* out, std::size_t width) {
  HWY_DYNAMIC_DISPATCH(along_row)(row, kernel, out, width);
}

}  // namespace precache::augment
#endif
