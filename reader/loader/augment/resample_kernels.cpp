// SPDX-License-Identifier: Apache-2.0
#include "reader/loader/augment/resample_kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reader/loader/augment/resample_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace precache::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr std::int32_t kHalf = 1 << (Taps::kPrecisionBits - 1);

std::uint8_t pixel_of(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::clamp(sum >> Taps::kPrecisionBits, 0, 255));
}

/// The definition, for outputs that are far apart. The sums are long then, so they use vectors.
void rows_by_definition(const PlaneRows& in, const HorizontalTable& table, std::uint8_t* out,
                        std::size_t out_stride) {
  for (std::size_t y = 0; y < in.rows; ++y) {
    const std::uint8_t* const row = in.first + y * in.stride;
    for (std::size_t x = 0; x < table.outputs; ++x) {
      const Taps::Output& output = table.taps.outputs[x];
      if (table.taps.weights.empty()) {
        out[y * out_stride + x] = row[output.first];
        continue;
      }
      const std::int32_t* const weights = table.taps.weights.data() + output.weights;
      std::int32_t sum = kHalf;
      for (std::uint32_t i = 0; i < output.count; ++i) sum += weights[i] * row[output.first + i];
      out[y * out_stride + x] = pixel_of(sum);
    }
  }
}

#if HWY_TARGET == HWY_SCALAR

std::size_t lane_count() { return 0; }

void rows(const PlaneRows& in, const HorizontalTable& table, bool, std::uint8_t* out,
          std::size_t out_stride) {
  rows_by_definition(in, table, out, out_stride);
}

void columns(const PlaneRows& in, const VerticalTable& table, bool, std::uint8_t* out,
             std::size_t out_stride) {
  for (const VerticalTable::Row& row : table.rows) {
    const std::uint8_t* const from = in.first + row.first * in.stride;
    for (std::size_t x = 0; x < in.width; ++x) {
      std::int32_t sum = kHalf;
      for (std::uint32_t i = 0; i < row.count; ++i) {
        sum += weight_of(table.pairs[row.pairs + i / 2], i % 2 == 1) * from[x + i * in.stride];
      }
      out[x] = pixel_of(sum);
    }
    out += out_stride;
  }
}

#else

// More than 64 bytes would overrun rows by more than kRowSlack.
using D32 = hn::CappedTag<std::int32_t, 16>;
using D16 = hn::Repartition<std::int16_t, D32>;
using D8 = hn::Repartition<std::uint8_t, D32>;
using V32 = hn::Vec<D32>;

/// For each lane, the products of its two 16-bit halves, added to `sum`.
HWY_INLINE V32 add_products(V32 pixels, V32 weights, V32 sum) {
  const D32 d;
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3
  const D16 d16;
  V32 unused = hn::Zero(d);
  return hn::ReorderWidenMulAccumulate(d, hn::BitCast(d16, pixels), hn::BitCast(d16, weights), sum,
                                       unused);
#else
  // Elsewhere that operation adds other neighbours.
  const V32 low =
      hn::Mul(hn::And(pixels, hn::Set(d, 0xffff)), hn::ShiftRight<16>(hn::ShiftLeft<16>(weights)));
  return hn::Add(sum,
                 hn::Add(low, hn::Mul(hn::ShiftRight<16>(pixels), hn::ShiftRight<16>(weights))));
#endif
}

/// Rounds sums to pixels, and puts them into byte kByte of the lanes of `pixels`.
template <int kByte, bool kClamp>
HWY_INLINE V32 add_pixels(V32 high, V32 low, V32 pixels) {
  const D32 d;
  const V32 sum = hn::Add(hn::ShiftLeft<kLowWeightBits>(high), low);
  constexpr int kShift = Taps::kPrecisionBits - 8 * kByte;
  if constexpr (kClamp) {
    V32 pixel = hn::ShiftRight<Taps::kPrecisionBits>(sum);
    pixel = hn::Min(hn::Max(pixel, hn::Zero(d)), hn::Set(d, 255));
    return hn::Or(pixels, hn::ShiftLeft<8 * kByte>(pixel));
  } else if constexpr (kByte == 0) {
    return hn::ShiftRight<kShift>(sum);
  } else if constexpr (kShift > 0) {
    return hn::OrAnd(pixels, hn::ShiftRight<kShift>(sum), hn::Set(d, 255 << (8 * kByte)));
  } else {
    const auto mask = static_cast<std::int32_t>(255U << (8 * kByte));
    return hn::OrAnd(pixels, hn::ShiftLeft<-kShift>(sum), hn::Set(d, mask));
  }
}

/// Four groups of outputs that follow each other: the vectors that HorizontalTable describes.
template <std::size_t kPairs, bool kClamp>
struct GroupSums {
  std::size_t pairs;

  template <int kByte>
  HWY_INLINE V32 add(const std::uint8_t* row, const std::int32_t* values, V32 pixels) const {
    const D32 d;
    const D8 d8;
    const std::size_t lanes = hn::Lanes(d);
    const auto blocks = hn::SetTableIndices(d, values);
    const auto bytes = hn::BitCast(d8, hn::LoadU(d, values + lanes));
    const std::int32_t* weights = values + 2 * lanes;
    V32 high = hn::Zero(d);
    V32 low = hn::Set(d, kHalf);
    const std::size_t count = kPairs == 0 ? pairs : kPairs;
    for (std::size_t pair = 0; pair < count; ++pair, weights += 2 * lanes) {
      const V32 loaded = hn::BitCast(d, hn::LoadU(d8, row + 2 * pair));
      const V32 windows = hn::TableLookupLanes(loaded, blocks);
      const V32 both = hn::BitCast(d, hn::TableLookupBytesOr0(hn::BitCast(d8, windows), bytes));
      high = add_products(both, hn::LoadU(d, weights), high);
      low = add_products(both, hn::LoadU(d, weights + lanes), low);
    }
    return add_pixels<kByte, kClamp>(high, low, pixels);
  }
};

/// Brings the outputs of four groups, in bytes 0 to 3 of each lane, to their places.
struct GroupOrder {
  HWY_ALIGN std::uint8_t in_block[64];
  HWY_ALIGN std::int32_t blocks[16];

  GroupOrder() {
    const std::size_t count = hn::Lanes(D32()) / 4;
    for (std::size_t i = 0; i < 64; ++i) {
      in_block[i] = static_cast<std::uint8_t>(i % 4 * 4 + i % 16 / 4);
    }
    for (std::size_t i = 0; i < 4 * count; ++i) {
      blocks[i] = static_cast<std::int32_t>(i % count * 4 + i / count);
    }
  }
  HWY_INLINE hn::Vec<D8> operator()(V32 pixels) const {
    const D32 d;
    const D8 d8;
    const auto transposed = hn::TableLookupBytes(hn::BitCast(d8, pixels), hn::Load(d8, in_block));
    return hn::BitCast(
        d8, hn::TableLookupLanes(hn::BitCast(d, transposed), hn::SetTableIndices(d, blocks)));
  }
};

template <std::size_t kPairs, bool kClamp>
void rows_of(const PlaneRows& in, const HorizontalTable& table, std::uint8_t* out,
             std::size_t out_stride) {
  const GroupOrder order;
  const GroupSums<kPairs, kClamp> sums{.pairs = table.pairs};
  const std::size_t lanes = table.lanes;
  const std::size_t step = table.group_values();
  const V32 none = hn::Zero(D32());
  for (std::size_t y = 0; y < in.rows; ++y) {
    const std::uint8_t* const row = in.first + y * in.stride;
    std::uint8_t* const to = out + y * out_stride;
    const std::int32_t* values = table.values.get();
    for (std::size_t group = 0; group < table.groups; group += 4, values += 4 * step) {
      const std::uint32_t* const base = table.bases.data() + group;
      V32 pixels = sums.template add<0>(row + base[0], values, none);
      pixels = sums.template add<1>(row + base[1], values + step, pixels);
      pixels = sums.template add<2>(row + base[2], values + 2 * step, pixels);
      pixels = sums.template add<3>(row + base[3], values + 3 * step, pixels);
      hn::StoreU(order(pixels), D8(), to + group * lanes);
    }
  }
}

template <std::size_t kPairs>
void rows_with(const PlaneRows& in, const HorizontalTable& table, bool clamp, std::uint8_t* out,
               std::size_t out_stride) {
  clamp ? rows_of<kPairs, true>(in, table, out, out_stride)
        : rows_of<kPairs, false>(in, table, out, out_stride);
}

void rows(const PlaneRows& in, const HorizontalTable& table, bool clamp, std::uint8_t* out,
          std::size_t out_stride) {
  if (table.lanes == 0) return rows_by_definition(in, table, out, out_stride);
  if (table.pairs == 1) return rows_with<1>(in, table, clamp, out, out_stride);
  if (table.pairs == 2) return rows_with<2>(in, table, clamp, out, out_stride);
  rows_with<0>(in, table, clamp, out, out_stride);
}

/// One vector of bytes of one row of the result. Lane i of a vector has bytes 4i to 4i + 3; the
/// pixels of two rows that are at byte k of their lanes make the pairs of one sum.
template <std::size_t kPairs, bool kClamp>
HWY_INLINE V32 column_sums(const std::uint8_t* from, std::size_t stride, std::size_t count,
                           const WeightPair* weights) {
  const D32 d;
  const D8 d8;
  const V32 even = hn::Set(d, 0x00ff00ff);
  const V32 low_half = hn::Set(d, 0xffff);
  const V32 high_half = hn::Not(low_half);
  V32 high0 = hn::Zero(d);
  V32 high1 = high0, high2 = high0, high3 = high0;
  V32 low0 = hn::Set(d, kHalf);
  V32 low1 = low0, low2 = low0, low3 = low0;
  const std::size_t pairs = kPairs == 0 ? (count + 1) / 2 : kPairs;
  const hn::Repartition<std::uint16_t, D32> u16;
  const hn::Repartition<std::uint32_t, D32> u32;
  for (std::size_t pair = 0; pair < pairs; ++pair) {
    const std::uint8_t* const upper = from + 2 * pair * stride;
    // The last row of an odd number is read twice; its second weight is 0.
    const std::uint8_t* const lower = 2 * pair + 1 < count ? upper + stride : upper;
    const V32 a = hn::BitCast(d, hn::LoadU(d8, upper));
    const V32 b = hn::BitCast(d, hn::LoadU(d8, lower));
    const V32 a_even = hn::And(a, even);
    const V32 b_even = hn::And(b, even);
    const V32 a_odd = hn::BitCast(d, hn::ShiftRight<8>(hn::BitCast(u16, a)));
    const V32 b_odd = hn::BitCast(d, hn::ShiftRight<8>(hn::BitCast(u16, b)));
    const V32 a_even_upper = hn::BitCast(d, hn::ShiftRight<16>(hn::BitCast(u32, a_even)));
    const V32 a_odd_upper = hn::BitCast(d, hn::ShiftRight<16>(hn::BitCast(u32, a_odd)));
    const V32 p0 = hn::OrAnd(hn::ShiftLeft<16>(b_even), a_even, low_half);
    const V32 p1 = hn::OrAnd(hn::ShiftLeft<16>(b_odd), a_odd, low_half);
    const V32 p2 = hn::OrAnd(a_even_upper, b_even, high_half);
    const V32 p3 = hn::OrAnd(a_odd_upper, b_odd, high_half);
    const V32 high = hn::Set(d, weights[pair].high);
    const V32 low = hn::Set(d, weights[pair].low);
    high0 = add_products(p0, high, high0);
    high1 = add_products(p1, high, high1);
    high2 = add_products(p2, high, high2);
    high3 = add_products(p3, high, high3);
    low0 = add_products(p0, low, low0);
    low1 = add_products(p1, low, low1);
    low2 = add_products(p2, low, low2);
    low3 = add_products(p3, low, low3);
  }
  V32 pixels = add_pixels<0, kClamp>(high0, low0, hn::Zero(d));
  pixels = add_pixels<1, kClamp>(high1, low1, pixels);
  pixels = add_pixels<2, kClamp>(high2, low2, pixels);
  return add_pixels<3, kClamp>(high3, low3, pixels);
}

template <std::size_t kPairs, bool kClamp>
void column_row(const std::uint8_t* from, const PlaneRows& in, std::size_t count,
                const WeightPair* weights, std::uint8_t* out) {
  const D8 d8;
  for (std::size_t x = 0; x < in.width; x += hn::Lanes(d8)) {
    const V32 pixels = column_sums<kPairs, kClamp>(from + x, in.stride, count, weights);
    hn::StoreU(hn::BitCast(d8, pixels), d8, out + x);
  }
}

template <bool kClamp>
void columns_of(const PlaneRows& in, const VerticalTable& table, std::uint8_t* out,
                std::size_t out_stride) {
  for (std::size_t y = 0; y < table.rows.size(); ++y, out += out_stride) {
    const VerticalTable::Row& row = table.rows[y];
    const std::uint8_t* const from = in.first + row.first * in.stride;
    const WeightPair* const weights = table.pairs.data() + row.pairs;
    if (row.count <= 2) {
      column_row<1, kClamp>(from, in, row.count, weights, out);
    } else if (row.count <= 4) {
      column_row<2, kClamp>(from, in, row.count, weights, out);
    } else {
      column_row<0, kClamp>(from, in, row.count, weights, out);
    }
  }
}

void columns(const PlaneRows& in, const VerticalTable& table, bool clamp, std::uint8_t* out,
             std::size_t out_stride) {
  clamp ? columns_of<true>(in, table, out, out_stride)
        : columns_of<false>(in, table, out, out_stride);
}

std::size_t lane_count() { return hn::Lanes(D32()); }

#endif

}  // namespace precache::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace precache {

HWY_EXPORT(rows);
HWY_EXPORT(columns);
HWY_EXPORT(lane_count);

std::size_t resample_lanes() { return HWY_DYNAMIC_DISPATCH(lane_count)(); }

void resample_rows(const PlaneRows& in, const HorizontalTable& table, bool clamp, std::uint8_t* out,
                   std::size_t out_stride) {
  HWY_DYNAMIC_DISPATCH(rows)(in, table, clamp, out, out_stride);
}

void resample_columns(const PlaneRows& in, const VerticalTable& table, bool clamp,
                      std::uint8_t* out, std::size_t out_stride) {
  HWY_DYNAMIC_DISPATCH(columns)(in, table, clamp, out, out_stride);
}

}  // namespace precache
#endif
