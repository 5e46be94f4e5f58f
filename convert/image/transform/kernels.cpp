// SPDX-License-Identifier: Apache-2.0
#include "convert/image/transform/kernels.hpp"

#ifndef PRECACHE_KERNELS_COMMON  // this file is compiled once for each instruction set, this part
                                 // only once
#define PRECACHE_KERNELS_COMMON

#include <algorithm>
#include <cstring>

#include "convert/image/decode/image_decoder.hpp"

namespace precache {

namespace {

constexpr int kHalfBits = 11;
constexpr std::int32_t kRounding = 1 << (Taps::kPrecisionBits - 1);
constexpr std::size_t kTapsPerGroup = 4;
constexpr std::size_t kWeightsPerGroup = 32;
constexpr std::size_t kOutputsPerStep = 4;
constexpr std::uint32_t kBlack = UINT32_MAX;  // in place of a position: no source pixel at all

constexpr std::int16_t high_half(std::int32_t weight) {
  return static_cast<std::int16_t>(weight >> kHalfBits);
}
constexpr std::int16_t low_half(std::int32_t weight) {
  return static_cast<std::int16_t>(weight & ((1 << kHalfBits) - 1));
}

}  // namespace
}  // namespace precache

#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "convert/image/transform/kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace precache::HWY_NAMESPACE {
#if HWY_TARGET == HWY_SCALAR  // without vectors: the definition for the others

inline std::uint8_t rounded(std::int32_t sum) {
  return static_cast<std::uint8_t>(std::clamp((sum + kRounding) >> Taps::kPrecisionBits, 0, 255));
}

void horizontal(const std::uint32_t* first_bytes, std::size_t count, std::size_t groups,
                const std::int16_t* weights, const std::uint8_t* row, std::uint8_t* out) {
  for (std::size_t i = 0; i < count; ++i, weights += groups * kWeightsPerGroup) {
    for (std::size_t channel = 0; channel < kPixelBytes; ++channel, ++out) {
      const std::uint8_t* pixel = row + first_bytes[i] + channel;
      std::int32_t sum = 0;
      for (std::size_t tap = 0; tap < groups * kTapsPerGroup; ++tap, pixel += kPixelBytes) {
        const std::size_t lane =
            tap / kTapsPerGroup * kWeightsPerGroup + tap % kTapsPerGroup / 2 * 8 + tap % 2;
        sum += *pixel * (weights[lane] * (1 << kHalfBits) + weights[lane + kWeightsPerGroup / 2]);
      }
      *out = rounded(sum);
    }
  }
}

void vertical(const std::uint8_t* const* rows, std::size_t taps, const std::int32_t* weights,
              std::size_t bytes, std::uint8_t* out) {
  for (std::size_t x = 0; x < bytes; ++x) {
    std::int32_t sum = 0;
    for (std::size_t tap = 0; tap < taps; ++tap) sum += rows[tap][x] * weights[tap];
    out[x] = rounded(sum);
  }
}

void planes(const std::uint8_t* pixels, std::size_t count, std::uint8_t* red, std::uint8_t* green,
            std::uint8_t* blue) {
  for (std::size_t i = 0; i < count; ++i) {
    red[i] = pixels[i * kPixelBytes];
    green[i] = pixels[i * kPixelBytes + 1];
    blue[i] = pixels[i * kPixelBytes + 2];
  }
}

void packed(const std::uint8_t* pixels, std::size_t count, std::uint8_t* out) {
  for (std::size_t i = 0; i < count; ++i) std::memcpy(out + i * 3, pixels + i * kPixelBytes, 3);
}

#else

namespace hn = hwy::HWY_NAMESPACE;

// At most two blocks of 16 bytes: enough to be bound by memory, and one shape of code for all
// instruction sets.
using D8 = hn::CappedTag<std::uint8_t, 32>;
using D16 = hn::Repartition<std::int16_t, D8>;
using D32 = hn::Repartition<std::int32_t, D8>;
using V16 = hn::Vec<D16>;
using V32 = hn::Vec<D32>;
constexpr bool kTwoBlocks = hn::MaxLanes(D8()) == 32;
constexpr hn::Full128<std::uint8_t> kD8x16;

// a[2i] * b[2i] + a[2i+1] * b[2i+1] in each lane i.
HWY_INLINE V32 multiply_pairs(V16 a, V16 b) {
  V32 odd = hn::Zero(D32());
  const V32 even = hn::ReorderWidenMulAccumulate(D32(), a, b, hn::Zero(D32()), odd);
  return hn::RearrangeToOddPlusEven(even, odd);
}

// Bytes of two neighbouring pixels as pairs of 16 bits: r0 r1 g0 g1 b0 b1 x0 x1; 0x80 gives zero.
alignas(32) constexpr std::uint8_t kPairShuffle[32] = {
    0, 0x80, 4,  0x80, 1, 0x80, 5,  0x80, 2,  0x80, 6,  0x80, 3,  0x80, 7,  0x80,
    8, 0x80, 12, 0x80, 9, 0x80, 13, 0x80, 10, 0x80, 14, 0x80, 11, 0x80, 15, 0x80};

// The sums for one output pixel: its four channels, in each block those of its taps.
HWY_INLINE V32 one_output(const std::uint8_t* row, const std::int16_t* weights,
                          std::size_t groups) {
  V32 high = hn::Zero(D32());
  V32 low = hn::Zero(D32());
  const auto add = [&](auto pixels, const std::uint8_t* shuffle,
                       const std::int16_t* group) HWY_ATTR {
    const V16 pairs = hn::BitCast(D16(), hn::TableLookupBytesOr0(pixels, hn::Load(D8(), shuffle)));
    high = hn::Add(high, multiply_pairs(pairs, hn::LoadU(D16(), group)));
    low = hn::Add(low, multiply_pairs(pairs, hn::LoadU(D16(), group + 16)));
  };
  for (std::size_t g = 0; g < groups; ++g, row += 16, weights += kWeightsPerGroup) {
    const auto pixels = hn::LoadDup128(D8(), row);
    add(pixels, kPairShuffle, weights);
    if constexpr (!kTwoBlocks) add(pixels, kPairShuffle + 16, weights + 8);
  }
  return hn::Add(hn::ShiftLeft<kHalfBits>(high), low);
}

template <typename V>
HWY_INLINE V round_off(V sum) {
  return hn::ShiftRight<Taps::kPrecisionBits>(hn::Add(sum, hn::Set(hn::DFromV<V>(), kRounding)));
}

template <typename V>
HWY_INLINE void store_outputs(V a, V b, V c, V d, std::uint8_t* out) {
  if constexpr (hn::MaxLanes(hn::DFromV<V>()) == 8) {
    // Both blocks of an output are added, two outputs at a time.
    const D32 d32;
    const V ac = hn::Add(hn::ConcatLowerLower(d32, c, a), hn::ConcatUpperUpper(d32, c, a));
    const V bd = hn::Add(hn::ConcatLowerLower(d32, d, b), hn::ConcatUpperUpper(d32, d, b));
    const auto abcd = hn::ReorderDemote2To(D16(), round_off(ac), round_off(bd));
    hn::StoreU(hn::DemoteTo(kD8x16, abcd), kD8x16, out);
  } else {
    const hn::Half<D8> half;
    hn::StoreU(hn::DemoteTo(half, hn::ReorderDemote2To(D16(), round_off(a), round_off(b))), half,
               out);
    hn::StoreU(hn::DemoteTo(half, hn::ReorderDemote2To(D16(), round_off(c), round_off(d))), half,
               out + 8);
  }
}

// `kGroups` is known to the compiler for the usual few taps, else 0.
template <std::size_t kGroups>
HWY_INLINE void horizontal_groups(const std::uint32_t* first_bytes, std::size_t count,
                                  std::size_t any_groups, const std::int16_t* weights,
                                  const std::uint8_t* row, std::uint8_t* out) {
  const std::size_t groups = kGroups == 0 ? any_groups : kGroups;
  const std::size_t step = groups * kWeightsPerGroup;
  for (std::size_t i = 0; i < count; i += kOutputsPerStep, weights += kOutputsPerStep * step) {
    const V32 a = one_output(row + first_bytes[i], weights, groups);
    const V32 b = one_output(row + first_bytes[i + 1], weights + step, groups);
    const V32 c = one_output(row + first_bytes[i + 2], weights + 2 * step, groups);
    const V32 d = one_output(row + first_bytes[i + 3], weights + 3 * step, groups);
    store_outputs(a, b, c, d, out + i * kPixelBytes);
  }
}

void horizontal(const std::uint32_t* first_bytes, std::size_t count, std::size_t groups,
                const std::int16_t* weights, const std::uint8_t* row, std::uint8_t* out) {
  switch (groups) {
    case 1:
      return horizontal_groups<1>(first_bytes, count, groups, weights, row, out);
    case 2:
      return horizontal_groups<2>(first_bytes, count, groups, weights, row, out);
    default:
      return horizontal_groups<0>(first_bytes, count, groups, weights, row, out);
  }
}

// Interleaving has spread each 16 bytes over four vectors; back in order.
template <typename V>
HWY_INLINE void store_in_order(V a, V b, V c, V d, std::uint8_t* out) {
  const auto first = hn::ReorderDemote2To(D16(), round_off(a), round_off(b));
  const auto second = hn::ReorderDemote2To(D16(), round_off(c), round_off(d));
  if constexpr (hn::MaxLanes(hn::DFromV<V>()) == 8) {
    hn::StoreU(hn::DemoteTo(kD8x16, hn::ConcatLowerLower(D16(), second, first)), kD8x16, out);
    hn::StoreU(hn::DemoteTo(kD8x16, hn::ConcatUpperUpper(D16(), second, first)), kD8x16, out + 16);
  } else {
    const hn::Half<D8> half;
    hn::StoreU(hn::DemoteTo(half, first), half, out);
    hn::StoreU(hn::DemoteTo(half, second), half, out + 8);
  }
}

void vertical(const std::uint8_t* const* rows, std::size_t taps, const std::int32_t* weights,
              std::size_t bytes, std::uint8_t* out) {
  const D8 d8;
  const auto zero = hn::Zero(d8);
  // Two weights side by side in each 32-bit lane.
  const auto pair = [](std::int16_t a, std::int16_t b) HWY_ATTR {
    const auto bits = static_cast<std::uint32_t>(static_cast<std::uint16_t>(a)) |
                      static_cast<std::uint32_t>(static_cast<std::uint16_t>(b)) << 16;
    return hn::BitCast(D16(), hn::Set(D32(), static_cast<std::int32_t>(bits)));
  };
  for (std::size_t x = 0; x < bytes; x += hn::Lanes(d8)) {
    V32 high[4] = {hn::Zero(D32()), hn::Zero(D32()), hn::Zero(D32()), hn::Zero(D32())};
    V32 low[4] = {hn::Zero(D32()), hn::Zero(D32()), hn::Zero(D32()), hn::Zero(D32())};
    for (std::size_t tap = 0; tap < taps; tap += 2) {
      const bool single = tap + 1 == taps;
      const std::int32_t other = single ? 0 : weights[tap + 1];
      const auto a = hn::LoadU(d8, rows[tap] + x);
      const auto b = hn::LoadU(d8, rows[single ? tap : tap + 1] + x);
      const auto lower = hn::InterleaveLower(d8, a, b);
      const auto upper = hn::InterleaveUpper(d8, a, b);
      const V16 pairs[4] = {hn::BitCast(D16(), hn::InterleaveLower(d8, lower, zero)),
                            hn::BitCast(D16(), hn::InterleaveUpper(d8, lower, zero)),
                            hn::BitCast(D16(), hn::InterleaveLower(d8, upper, zero)),
                            hn::BitCast(D16(), hn::InterleaveUpper(d8, upper, zero))};
      const V16 high_weights = pair(high_half(weights[tap]), high_half(other));
      const V16 low_weights = pair(low_half(weights[tap]), low_half(other));
      for (int i = 0; i < 4; ++i) {
        high[i] = hn::Add(high[i], multiply_pairs(pairs[i], high_weights));
        low[i] = hn::Add(low[i], multiply_pairs(pairs[i], low_weights));
      }
    }
    for (int i = 0; i < 4; ++i) high[i] = hn::Add(hn::ShiftLeft<kHalfBits>(high[i]), low[i]);
    store_in_order(high[0], high[1], high[2], high[3], out + x);
  }
}

void planes(const std::uint8_t* pixels, std::size_t count, std::uint8_t* red, std::uint8_t* green,
            std::uint8_t* blue) {
  const D8 d8;
  std::size_t i = 0;
  for (; i + hn::Lanes(d8) <= count; i += hn::Lanes(d8)) {
    hn::Vec<D8> r, g, b, x;
    hn::LoadInterleaved4(d8, pixels + i * kPixelBytes, r, g, b, x);
    hn::StoreU(r, d8, red + i);
    hn::StoreU(g, d8, green + i);
    hn::StoreU(b, d8, blue + i);
  }
  for (; i < count; ++i) {
    red[i] = pixels[i * kPixelBytes];
    green[i] = pixels[i * kPixelBytes + 1];
    blue[i] = pixels[i * kPixelBytes + 2];
  }
}

void packed(const std::uint8_t* pixels, std::size_t count, std::uint8_t* out) {
  const D8 d8;
  std::size_t i = 0;
  for (; i + hn::Lanes(d8) <= count; i += hn::Lanes(d8)) {
    hn::Vec<D8> r, g, b, x;
    hn::LoadInterleaved4(d8, pixels + i * kPixelBytes, r, g, b, x);
    hn::StoreInterleaved3(r, g, b, d8, out + i * 3);
  }
  for (; i < count; ++i) std::memcpy(out + i * 3, pixels + i * kPixelBytes, 3);
}

#endif

}  // namespace precache::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace precache {

HWY_EXPORT(horizontal);
HWY_EXPORT(vertical);
HWY_EXPORT(planes);
HWY_EXPORT(packed);

HorizontalPass::HorizontalPass(const Taps& taps) : copies_(taps.weights.empty()) {
  std::size_t most_taps = 0;
  for (const Taps::Output& output : taps.outputs)
    most_taps = std::max<std::size_t>(most_taps, output.count);
  groups_ = (most_taps + kTapsPerGroup - 1) / kTapsPerGroup;
  // Every output reads as many pixels as the widest; one near the end starts earlier for that, with
  // weights of zero, so that no load passes the end of the row by more than three pixels.
  const std::size_t width = taps.end - taps.begin;
  const std::size_t last_first = width - std::min(width, groups_ * kTapsPerGroup);
  for (const Taps::Output& output : taps.outputs) {
    if (output.count == 0) {
      first_bytes_.push_back(kBlack);
      continue;
    }
    const std::size_t wanted = output.first - taps.begin;
    const std::size_t first = copies_ ? wanted : std::min(wanted, last_first);
    first_bytes_.push_back(static_cast<std::uint32_t>(first * kPixelBytes));
    if (copies_) continue;
    for (std::size_t group = 0; group < groups_; ++group) {
      std::int16_t halves[kWeightsPerGroup];
      for (std::size_t i = 0; i < kWeightsPerGroup / 2; ++i) {
        // Lanes 0 to 7 hold taps 0 and 1 by turns, 8 to 15 taps 2 and 3.
        const std::size_t pixel = first + group * kTapsPerGroup + i / 8 * 2 + i % 2;
        const bool used = pixel >= wanted && pixel - wanted < output.count;
        const std::int32_t weight = used ? taps.weights[output.weights + pixel - wanted] : 0;
        halves[i] = high_half(weight);
        halves[i + kWeightsPerGroup / 2] = low_half(weight);
      }
      weights_.insert(weights_.end(), std::begin(halves), std::end(halves));
    }
  }
  if (copies_) return;
  while (first_bytes_.size() % kOutputsPerStep != 0) {
    first_bytes_.push_back(0);
    weights_.resize(weights_.size() + groups_ * kWeightsPerGroup);
  }
}

void HorizontalPass::run(const std::uint8_t* row, std::uint8_t* out) const {
  if (!copies_) {
    HWY_DYNAMIC_DISPATCH(horizontal)
    (first_bytes_.data(), first_bytes_.size(), groups_, weights_.data(), row, out);
    return;
  }
  for (const std::uint32_t first_byte : first_bytes_) {
    if (first_byte == kBlack) {
      std::memset(out, 0, kPixelBytes);
    } else {
      std::memcpy(out, row + first_byte, kPixelBytes);
    }
    out += kPixelBytes;
  }
}

void run_vertical_pass(std::span<const std::uint8_t* const> rows, const std::int32_t* weights,
                       std::size_t bytes, std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(vertical)(rows.data(), rows.size(), weights, bytes, out);
}

void split_planes(const std::uint8_t* pixels, std::size_t count, std::uint8_t* red,
                  std::uint8_t* green, std::uint8_t* blue) {
  HWY_DYNAMIC_DISPATCH(planes)(pixels, count, red, green, blue);
}

void pack_rgb(const std::uint8_t* pixels, std::size_t count, std::uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(packed)(pixels, count, out);
}

}  // namespace precache
#endif
