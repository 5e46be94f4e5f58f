// SPDX-License-Identifier: Apache-2.0
#include "reader/loader/augment/warp_kernels.hpp"

// This file is compiled once for each instruction set, but this part only once.
#ifndef PRECACHE_WARP_KERNELS_COMMON
#define PRECACHE_WARP_KERNELS_COMMON

#include <cmath>
#include <cstring>

#include "reader/loader/augment/inside_columns.hpp"

namespace precache::augment {
namespace {

inline void fill_columns(const Warp& warp, std::uint32_t row, Columns columns) {
  if (columns.begin == columns.end) return;
  for (std::uint32_t channel = 0; channel < warp.channels; ++channel) {
    std::memset(warp.planes[channel] + std::size_t{row} * warp.width + columns.begin,
                warp.fill[channel], columns.end - columns.begin);
  }
}

inline void fill_around(const Warp& warp, std::uint32_t row, Columns columns) {
  fill_columns(warp, row, {0, columns.begin});
  fill_columns(warp, row, {columns.end, warp.width});
}

inline void put(const Warp& warp, std::size_t at, std::uint32_t pixel) {
  for (std::uint32_t channel = 0; channel < warp.channels; ++channel) {
    warp.planes[channel][at] = static_cast<std::uint8_t>(pixel >> (8 * channel));
  }
}

inline void put_bilinear(const Warp& warp, std::size_t at, double x, double y) {
  const double left = std::floor(x - 0.5);
  const double top = std::floor(y - 0.5);
  const double right_share = (x - 0.5) - left;
  const double bottom_share = (y - 0.5) - top;
  const auto stride = static_cast<std::ptrdiff_t>(warp.stride());
  const std::uint32_t* const upper =
      warp.first() + static_cast<std::ptrdiff_t>(top) * stride + static_cast<std::ptrdiff_t>(left);
  const std::uint32_t* const lower = upper + stride;
  for (std::uint32_t channel = 0; channel < warp.channels; ++channel) {
    const auto value = [channel](std::uint32_t pixel) {
      return static_cast<double>(pixel >> (8 * channel) & 0xff);
    };
    const double high = between(value(upper[0]), value(upper[1]), right_share);
    const double low = between(value(lower[0]), value(lower[1]), right_share);
    warp.planes[channel][at] = static_cast<std::uint8_t>(between(high, low, bottom_share));
  }
}

}  // namespace
}  // namespace precache::augment

#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reader/loader/augment/warp_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace precache::augment::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Pixels.
using DWord = hn::ScalableTag<std::uint32_t>;
using DIndex = hn::Rebind<std::int32_t, DWord>;
using DByte = hn::Rebind<std::uint8_t, DWord>;

template <std::uint32_t kChannel, typename D>
HWY_INLINE auto channel_of(D d, hn::Vec<D> words) {
  const auto shifted = [&]() HWY_ATTR {
    if constexpr (kChannel == 0) return words;
    return hn::ShiftRight<static_cast<int>(8 * kChannel)>(words);
  }();
  return hn::And(shifted, hn::Set(d, 0xff));
}

template <std::uint32_t kChannel>
HWY_INLINE void put_channel(const Warp& warp, std::size_t at, hn::Vec<DWord> pixels) {
  const auto values = hn::BitCast(DIndex(), channel_of<kChannel>(DWord(), pixels));
  hn::StoreU(hn::DemoteTo(DByte(), values), DByte(), warp.planes[kChannel] + at);
}

HWY_INLINE void put_pixels(const Warp& warp, std::size_t at, hn::Vec<DWord> pixels) {
  put_channel<0>(warp, at, pixels);
  if (warp.channels == 1) return;
  put_channel<1>(warp, at, pixels);
  if (warp.channels == 2) return;
  put_channel<2>(warp, at, pixels);
  if (warp.channels == 3) return;
  put_channel<3>(warp, at, pixels);
}

void weave_row(const Warp& warp, const std::uint8_t* const* rows, std::uint32_t* out) {
  std::size_t x = 0;
  const std::size_t step = hn::Lanes(DWord());
  for (; x + step <= warp.width; x += step) {
    auto pixels = hn::PromoteTo(DWord(), hn::LoadU(DByte(), rows[0] + x));
    if (warp.channels >= 3) {
      const auto green = hn::PromoteTo(DWord(), hn::LoadU(DByte(), rows[1] + x));
      const auto blue = hn::PromoteTo(DWord(), hn::LoadU(DByte(), rows[2] + x));
      pixels = hn::Or(pixels, hn::Or(hn::ShiftLeft<8>(green), hn::ShiftLeft<16>(blue)));
    } else if (warp.channels == 2) {
      const auto second = hn::PromoteTo(DWord(), hn::LoadU(DByte(), rows[1] + x));
      pixels = hn::Or(pixels, hn::ShiftLeft<8>(second));
    }
    if (warp.channels == 4) {
      const auto last = hn::PromoteTo(DWord(), hn::LoadU(DByte(), rows[3] + x));
      pixels = hn::Or(pixels, hn::ShiftLeft<24>(last));
    }
    hn::StoreU(pixels, DWord(), out + x);
  }
  for (; x < warp.width; ++x) {
    std::uint32_t pixel = 0;
    for (std::uint32_t channel = 0; channel < warp.channels; ++channel) {
      pixel |= std::uint32_t{rows[channel][x]} << (8 * channel);
    }
    out[x] = pixel;
  }
}

void weave_in(const Warp& warp) {
  const std::size_t stride = warp.stride();
  for (std::uint32_t y = 0; y < warp.height; ++y) {
    std::array<const std::uint8_t*, kWovenChannels> rows{};
    for (std::uint32_t channel = 0; channel < warp.channels; ++channel) {
      rows[channel] = warp.planes[channel] + std::size_t{y} * warp.width;
    }
    std::uint32_t* const out = warp.first() + y * stride;
    weave_row(warp, rows.data(), out);
    out[-1] = out[0];
    out[warp.width] = out[warp.width - 1];
  }
  std::memcpy(warp.woven, warp.woven + stride, stride * sizeof(std::uint32_t));
  std::uint32_t* const last = warp.woven + stride * warp.height;
  std::memcpy(last + stride, last, stride * sizeof(std::uint32_t));
}

void warp_fixed_in(const Warp& warp, FixedPoint start, FixedPoint right, FixedPoint down) {
  const DIndex d;
  const std::size_t step = hn::Lanes(d);
  const auto stride = static_cast<std::int32_t>(warp.stride());
  const auto strides = hn::Set(d, stride);
  const auto lanes = hn::Iota(d, 0);
  const auto x_lanes = hn::Mul(lanes, hn::Set(d, right.x));
  const auto y_lanes = hn::Mul(lanes, hn::Set(d, right.y));
  for (std::uint32_t row = 0; row < warp.height; ++row) {
    const std::int64_t x0 = start.x + std::int64_t{row} * down.x;
    const std::int64_t y0 = start.y + std::int64_t{row} * down.y;
    const auto x_at = [&](std::uint32_t x) {
      return static_cast<double>(x0 + std::int64_t{x} * right.x);
    };
    const auto y_at = [&](std::uint32_t x) {
      return static_cast<double>(y0 + std::int64_t{x} * right.y);
    };
    const Columns columns = both(inside_columns(warp.width, warp.width * 65536.0, right.x, x_at),
                                 inside_columns(warp.width, warp.height * 65536.0, right.y, y_at));
    fill_around(warp, row, columns);
    const std::size_t out = std::size_t{row} * warp.width;
    std::uint32_t x = columns.begin;
    for (; x + step <= columns.end; x += static_cast<std::uint32_t>(step)) {
      const auto first_x = static_cast<std::int32_t>(x0 + std::int64_t{x} * right.x);
      const auto first_y = static_cast<std::int32_t>(y0 + std::int64_t{x} * right.y);
      const auto source_x = hn::ShiftRight<16>(hn::Add(hn::Set(d, first_x), x_lanes));
      const auto source_y = hn::ShiftRight<16>(hn::Add(hn::Set(d, first_y), y_lanes));
      const auto index = hn::Add(hn::Mul(source_y, strides), source_x);
      put_pixels(warp, out + x, hn::GatherIndex(DWord(), warp.first(), index));
    }
    for (; x < columns.end; ++x) {
      const std::int64_t source_x = (x0 + std::int64_t{x} * right.x) >> 16;
      const std::int64_t source_y = (y0 + std::int64_t{x} * right.y) >> 16;
      put(warp, out + x, warp.first()[source_y * stride + source_x]);
    }
  }
}

void warp_by_table_in(const Warp& warp, std::uint32_t row, std::uint32_t source_row,
                      Columns columns) {
  const DIndex d;
  const std::size_t step = hn::Lanes(d);
  const std::uint32_t* const source = warp.first() + source_row * warp.stride();
  const std::uint32_t* const table = warp.table();
  fill_around(warp, row, columns);
  const std::size_t out = std::size_t{row} * warp.width;
  std::uint32_t x = columns.begin;
  for (; x + step <= columns.end; x += static_cast<std::uint32_t>(step)) {
    const auto index = hn::BitCast(d, hn::LoadU(DWord(), table + x));
    put_pixels(warp, out + x, hn::GatherIndex(DWord(), source, index));
  }
  for (; x < columns.end; ++x) put(warp, out + x, source[table[x]]);
}

// Bilinear values: doubles, with half as many lanes.
using DDouble = hn::ScalableTag<double>;
using VDouble = hn::Vec<DDouble>;
using DHalfIndex = hn::Rebind<std::int32_t, DDouble>;
using DHalfWord = hn::Rebind<std::uint32_t, DDouble>;
using DHalfByte = hn::Rebind<std::uint8_t, DDouble>;
using VHalfWord = hn::Vec<DHalfWord>;

/// The four neighbours of each point, and its place between them.
struct Corners {
  VHalfWord top_left, top_right, bottom_left, bottom_right;
  VDouble right_share, bottom_share;
};

template <std::uint32_t kChannel>
HWY_INLINE VDouble doubles_of(VHalfWord pixels) {
  const auto values = channel_of<kChannel>(DHalfWord(), pixels);
  return hn::PromoteTo(DDouble(), hn::BitCast(DHalfIndex(), values));
}

HWY_INLINE VDouble between(VDouble a, VDouble b, VDouble share) {
  return hn::Add(a, hn::Mul(hn::Sub(b, a), share));
}

template <std::uint32_t kChannel>
HWY_INLINE void put_bilinears(const Warp& warp, std::size_t at, const Corners& corners) {
  const VDouble top = between(doubles_of<kChannel>(corners.top_left),
                              doubles_of<kChannel>(corners.top_right), corners.right_share);
  const VDouble bottom = between(doubles_of<kChannel>(corners.bottom_left),
                                 doubles_of<kChannel>(corners.bottom_right), corners.right_share);
  const auto values = hn::DemoteTo(DHalfIndex(), between(top, bottom, corners.bottom_share));
  hn::StoreU(hn::DemoteTo(DHalfByte(), values), DHalfByte(), warp.planes[kChannel] + at);
}

HWY_INLINE Corners corners_at(const Warp& warp, VDouble x, VDouble y) {
  const DDouble d;
  const DHalfIndex d_index;
  const auto half = hn::Set(d, 0.5);
  const VDouble shifted_x = hn::Sub(x, half);
  const VDouble shifted_y = hn::Sub(y, half);
  const VDouble left = hn::Floor(shifted_x);
  const VDouble top = hn::Floor(shifted_y);
  const auto stride = static_cast<std::int32_t>(warp.stride());
  const auto index = hn::Add(hn::Mul(hn::DemoteTo(d_index, top), hn::Set(d_index, stride)),
                             hn::DemoteTo(d_index, left));
  const DHalfWord d_word;
  const std::uint32_t* const upper = warp.first();
  const std::uint32_t* const lower = upper + stride;
  return {hn::GatherIndex(d_word, upper, index),
          hn::GatherIndex(d_word, upper + 1, index),
          hn::GatherIndex(d_word, lower, index),
          hn::GatherIndex(d_word, lower + 1, index),
          hn::Sub(shifted_x, left),
          hn::Sub(shifted_y, top)};
}

HWY_INLINE VDouble coordinates(const Coordinate& at, VDouble middles) {
  const DDouble d;
  return hn::Add(hn::Add(hn::Mul(hn::Set(d, at.slope), middles), hn::Set(d, at.row)),
                 hn::Set(d, at.offset));
}

void warp_bilinear_in(const Warp& warp, Coordinate x_at, double x_down, Coordinate y_at,
                      double y_down) {
  const DDouble d;
  const std::size_t step = hn::Lanes(d);
  const VDouble lanes = hn::Add(hn::Iota(d, 0), hn::Set(d, 0.5));
  for (std::uint32_t row = 0; row < warp.height; ++row) {
    const double middle = row + 0.5;
    x_at.row = x_down * middle;
    y_at.row = y_down * middle;
    const Columns columns = both(inside_columns(warp.width, warp.width, x_at.slope, x_at),
                                 inside_columns(warp.width, warp.height, y_at.slope, y_at));
    fill_around(warp, row, columns);
    const std::size_t out = std::size_t{row} * warp.width;
    std::uint32_t x = columns.begin;
    for (; x + step <= columns.end; x += static_cast<std::uint32_t>(step)) {
      const VDouble middles = hn::Add(lanes, hn::Set(d, x));
      const Corners corners =
          corners_at(warp, coordinates(x_at, middles), coordinates(y_at, middles));
      put_bilinears<0>(warp, out + x, corners);
      if (warp.channels >= 2) put_bilinears<1>(warp, out + x, corners);
      if (warp.channels >= 3) put_bilinears<2>(warp, out + x, corners);
      if (warp.channels == 4) put_bilinears<3>(warp, out + x, corners);
    }
    for (; x < columns.end; ++x) put_bilinear(warp, out + x, x_at(x), y_at(x));
  }
}

}  // namespace precache::augment::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace precache::augment {

HWY_EXPORT(weave_in);
HWY_EXPORT(warp_fixed_in);
HWY_EXPORT(warp_by_table_in);
HWY_EXPORT(warp_bilinear_in);

void weave(const Warp& warp) { HWY_DYNAMIC_DISPATCH(weave_in)(warp); }

void warp_fixed(const Warp& warp, FixedPoint start, FixedPoint right, FixedPoint down) {
  HWY_DYNAMIC_DISPATCH(warp_fixed_in)(warp, start, right, down);
}

void warp_by_table(const Warp& warp, std::uint32_t row, std::uint32_t source_row, Columns columns) {
  HWY_DYNAMIC_DISPATCH(warp_by_table_in)(warp, row, source_row, columns);
}

void fill_row(const Warp& warp, std::uint32_t row, Columns columns) {
  fill_columns(warp, row, columns);
}

void put_pixel(const Warp& warp, std::uint32_t row, std::uint32_t column, std::uint32_t source_row,
               std::uint32_t source_column) {
  put(warp, std::size_t{row} * warp.width + column,
      warp.first()[source_row * warp.stride() + source_column]);
}

void put_bilinear_pixel(const Warp& warp, std::uint32_t row, std::uint32_t column, double x,
                        double y) {
  put_bilinear(warp, std::size_t{row} * warp.width + column, x, y);
}

void warp_bilinear(const Warp& warp, Coordinate x, double x_down, Coordinate y, double y_down) {
  HWY_DYNAMIC_DISPATCH(warp_bilinear_in)(warp, x, x_down, y, y_down);
}

}  // namespace precache::augment
#endif
