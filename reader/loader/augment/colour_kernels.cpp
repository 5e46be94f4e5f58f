// SPDX-License-Identifier: Apache-2.0
#include "reader/loader/augment/colour_kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reader/loader/augment/colour_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "reader/loader/augment/colour_body.hpp"

HWY_BEFORE_NAMESPACE();
namespace precache::augment::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using DFloat = hn::ScalableTag<float>;
using DInt = hn::Rebind<std::int32_t, DFloat>;
using DByte = hn::Rebind<std::uint8_t, DFloat>;
using VFloat = hn::Vec<DFloat>;
using VInt = hn::Vec<DInt>;

HWY_INLINE VInt load_ints(const std::uint8_t* bytes) {
  return hn::PromoteTo(DInt(), hn::LoadU(DByte(), bytes));
}

HWY_INLINE void store_ints(VInt values, std::uint8_t* bytes) {
  hn::StoreU(hn::DemoteTo(DByte(), values), DByte(), bytes);  // clips
}

/// blend() of a vector.
HWY_INLINE VInt blended(VInt from, VInt pixels, VFloat factor) {
  const DFloat d;
  const VFloat change = hn::Mul(factor, hn::ConvertTo(d, hn::Sub(pixels, from)));
  // The sum truncates towards 0, so all below 1 becomes 0, and DemoteTo() clips the rest.
  return hn::ConvertTo(DInt(), hn::Add(hn::ConvertTo(d, from), change));
}

HWY_INLINE VInt luma_of(VInt r, VInt g, VInt b) {
  const DInt d;
  const VInt sum = hn::Add(hn::Add(hn::Mul(r, hn::Set(d, 19595)), hn::Mul(g, hn::Set(d, 38470))),
                           hn::Add(hn::Mul(b, hn::Set(d, 7471)), hn::Set(d, 0x8000)));
  return hn::ShiftRight<16>(sum);
}

void blend_from_grey_in(std::uint8_t* bytes, std::size_t size, std::uint8_t grey, float factor) {
  const VInt from = hn::Set(DInt(), grey);
  const VFloat factors = hn::Set(DFloat(), factor);
  const std::size_t step = hn::Lanes(DFloat());
  std::size_t i = 0;
  for (; i + step <= size; i += step) {
    store_ints(blended(from, load_ints(bytes + i), factors), bytes + i);
  }
  for (; i < size; ++i) bytes[i] = blend(grey, bytes[i], factor);
}

void blend_from_image_in(std::uint8_t* from, const std::uint8_t* bytes, std::size_t size,
                         float factor) {
  const VFloat factors = hn::Set(DFloat(), factor);
  const std::size_t step = hn::Lanes(DFloat());
  std::size_t i = 0;
  for (; i + step <= size; i += step) {
    store_ints(blended(load_ints(from + i), load_ints(bytes + i), factors), from + i);
  }
  for (; i < size; ++i) from[i] = blend(from[i], bytes[i], factor);
}

void blend_from_luma_in(const Planes& planes, float factor) {
  const VFloat factors = hn::Set(DFloat(), factor);
  const std::size_t step = hn::Lanes(DFloat());
  std::size_t i = 0;
  for (; i + step <= planes.size; i += step) {
    const VInt r = load_ints(planes.r + i);
    const VInt g = load_ints(planes.g + i);
    const VInt b = load_ints(planes.b + i);
    const VInt grey = luma_of(r, g, b);
    store_ints(blended(grey, r, factors), planes.r + i);
    store_ints(blended(grey, g, factors), planes.g + i);
    store_ints(blended(grey, b, factors), planes.b + i);
  }
  for (; i < planes.size; ++i) {
    const std::uint8_t grey = luma(planes.r[i], planes.g[i], planes.b[i]);
    planes.r[i] = blend(grey, planes.r[i], factor);
    planes.g[i] = blend(grey, planes.g[i], factor);
    planes.b[i] = blend(grey, planes.b[i], factor);
  }
}

void replace_by_luma_in(const Planes& planes) {
  const std::size_t step = hn::Lanes(DFloat());
  std::size_t i = 0;
  for (; i + step <= planes.size; i += step) {
    const VInt grey =
        luma_of(load_ints(planes.r + i), load_ints(planes.g + i), load_ints(planes.b + i));
    store_ints(grey, planes.r + i);
    store_ints(grey, planes.g + i);
    store_ints(grey, planes.b + i);
  }
  for (; i < planes.size; ++i) {
    planes.r[i] = planes.g[i] = planes.b[i] = luma(planes.r[i], planes.g[i], planes.b[i]);
  }
}

std::uint64_t sum_of_luma_in(const Planes& planes) {
  const std::size_t step = hn::Lanes(DFloat());
  std::uint64_t total = 0;
  std::size_t i = 0;
  constexpr std::size_t kMost = std::size_t{1} << 18;  // pixels whose sum fits into 32 bits
  while (i + step <= planes.size) {
    VInt sums = hn::Zero(DInt());
    for (std::size_t n = 0; n < kMost && i + step <= planes.size; n += step, i += step) {
      sums = hn::Add(
          sums, luma_of(load_ints(planes.r + i), load_ints(planes.g + i), load_ints(planes.b + i)));
    }
    total += static_cast<std::uint32_t>(hn::GetLane(hn::SumOfLanes(DInt(), sums)));
  }
  for (; i < planes.size; ++i) total += luma(planes.r[i], planes.g[i], planes.b[i]);
  return total;
}

// The compiler makes vectors of the following loops.

std::uint64_t sum_of_bytes_in(const std::uint8_t* bytes, std::size_t size) {
  constexpr std::size_t kMost = std::size_t{1} << 20;
  std::uint64_t total = 0;
  for (std::size_t first = 0; first < size; first += kMost) {
    std::uint32_t sum = 0;
    const std::size_t end = size - first < kMost ? size : first + kMost;
    for (std::size_t i = first; i < end; ++i) sum += bytes[i];
    total += sum;
  }
  return total;
}

Extrema extrema_of_in(const std::uint8_t* bytes, std::size_t size) {
  std::uint8_t low = 255;
  std::uint8_t high = 0;
  for (std::size_t i = 0; i < size; ++i) {
    low = bytes[i] < low ? bytes[i] : low;
    high = bytes[i] > high ? bytes[i] : high;
  }
  return {low, high};
}

void keep_bits_in(std::uint8_t* bytes, std::size_t size, std::uint8_t mask) {
  for (std::size_t i = 0; i < size; ++i) bytes[i] &= mask;
}

void invert_from_in(std::uint8_t* bytes, std::size_t size, std::uint32_t threshold) {
  if (threshold > 255) return;
  const auto from = static_cast<std::uint8_t>(threshold);
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<std::uint8_t>(bytes[i] < from ? bytes[i] : 255 - bytes[i]);
  }
}

void smooth_row_in(const std::uint8_t* HWY_RESTRICT above, const std::uint8_t* HWY_RESTRICT row,
                   const std::uint8_t* HWY_RESTRICT below, std::uint8_t* HWY_RESTRICT out,
                   std::size_t width) {
  for (std::size_t x = 1; x + 1 < width; ++x) {
    const std::uint32_t around = std::uint32_t{above[x - 1]} + above[x] + above[x + 1] +
                                 row[x - 1] + row[x + 1] + below[x - 1] + below[x] + below[x + 1];
    // The quotient of smooth(), for all sums that there are: a test tries them.
    const std::uint32_t twice = 2 * (around + 5U * row[x]) + 13;
    out[x] = static_cast<std::uint8_t>(twice * 40330U >> 20);
  }
}

}  // namespace precache::augment::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace precache::augment {

HWY_EXPORT(blend_from_grey_in);
HWY_EXPORT(blend_from_image_in);
HWY_EXPORT(blend_from_luma_in);
HWY_EXPORT(replace_by_luma_in);
HWY_EXPORT(sum_of_luma_in);
HWY_EXPORT(sum_of_bytes_in);
HWY_EXPORT(extrema_of_in);
HWY_EXPORT(keep_bits_in);
HWY_EXPORT(invert_from_in);
HWY_EXPORT(smooth_row_in);

void blend_from_grey(std::uint8_t* bytes, std::size_t size, std::uint8_t grey, float factor) {
  HWY_DYNAMIC_DISPATCH(blend_from_grey_in)(bytes, size, grey, factor);
}
void blend_from_image(std::uint8_t* from, const std::uint8_t* bytes, std::size_t size,
                      float factor) {
  HWY_DYNAMIC_DISPATCH(blend_from_image_in)(from, bytes, size, factor);
}
void blend_from_luma(const Planes& planes, float factor) {
  HWY_DYNAMIC_DISPATCH(blend_from_luma_in)(planes, factor);
}
void replace_by_luma(const Planes& planes) { HWY_DYNAMIC_DISPATCH(replace_by_luma_in)(planes); }
std::uint64_t sum_of_luma(const Planes& planes) {
  return HWY_DYNAMIC_DISPATCH(sum_of_luma_in)(planes);
}
std::uint64_t sum_of_bytes(const std::uint8_t* bytes, std::size_t size) {
  return HWY_DYNAMIC_DISPATCH(sum_of_bytes_in)(bytes, size);
}
Extrema extrema_of(const std::uint8_t* bytes, std::size_t size) {
  return HWY_DYNAMIC_DISPATCH(extrema_of_in)(bytes, size);
}
void keep_bits(std::uint8_t* bytes, std::size_t size, std::uint8_t mask) {
  HWY_DYNAMIC_DISPATCH(keep_bits_in)(bytes, size, mask);
}
void invert_from(std::uint8_t* bytes, std::size_t size, std::uint32_t threshold) {
  HWY_DYNAMIC_DISPATCH(invert_from_in)(bytes, size, threshold);
}
void smooth_row(const std::uint8_t* above, const std::uint8_t* row, const std::uint8_t* below,
                std::uint8_t* out, std::size_t width) {
  HWY_DYNAMIC_DISPATCH(smooth_row_in)(above, row, below, out, width);
}

void look_up(std::uint8_t* bytes, std::size_t size, const std::array<std::uint8_t, 256>& table) {
  for (std::size_t i = 0; i < size; ++i) bytes[i] = table[bytes[i]];
}

void shift_hue(const Planes& planes, std::uint8_t shift) {
  for (std::size_t i = 0; i < planes.size; ++i) {
    Hsv pixel = hsv_of({planes.r[i], planes.g[i], planes.b[i]});
    pixel.h = static_cast<std::uint8_t>(pixel.h + shift);
    const Rgb result = rgb_of(pixel);
    planes.r[i] = result.r;
    planes.g[i] = result.g;
    planes.b[i] = result.b;
  }
}

}  // namespace precache::augment
#endif
