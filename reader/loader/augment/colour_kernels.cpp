// SPDX-License-Identifier: Apache-2.0
#include "reader/loader/augment/colour_kernels.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reader/loader/augment/colour_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "reader/loader/augment/byte_lanes-inl.hpp"
#include "reader/loader/augment/colour_body.hpp"

HWY_BEFORE_NAMESPACE();
namespace precache::augment::HWY_NAMESPACE {

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

/// smooth() of a vector: the quotient is right for all sums that there are, as a test tries.
template <typename D>
HWY_INLINE hn::Vec<D> smoothed(D d, const std::uint8_t* above, const std::uint8_t* row,
                               const std::uint8_t* below, std::size_t x) {
  const hn::Rebind<std::uint8_t, D> d_byte;
  const auto three = [&](const std::uint8_t* at) HWY_ATTR {
    return hn::Add(hn::Add(hn::PromoteTo(d, hn::LoadU(d_byte, at + x - 1)),
                           hn::PromoteTo(d, hn::LoadU(d_byte, at + x))),
                   hn::PromoteTo(d, hn::LoadU(d_byte, at + x + 1)));
  };
  const auto middle = hn::PromoteTo(d, hn::LoadU(d_byte, row + x));
  const auto sum =
      hn::Add(hn::Add(three(above), three(below)), hn::Add(three(row), hn::ShiftLeft<2>(middle)));
  const auto twice = hn::Add(hn::Add(sum, sum), hn::Set(d, 13));
  return hn::ShiftRight<4>(hn::MulHigh(twice, hn::Set(d, 40330)));  // a 26th
}

void smooth_row_in(const std::uint8_t* above, const std::uint8_t* row, const std::uint8_t* below,
                   std::uint8_t* out, std::size_t width) {
  const hn::ScalableTag<std::uint16_t> d;
  const std::size_t step = hn::Lanes(d);
  std::size_t x = 1;
  for (; x + step < width; x += step) {
    const auto values =
        hn::BitCast(hn::RebindToSigned<decltype(d)>(), smoothed(d, above, row, below, x));
    const hn::Rebind<std::uint8_t, decltype(d)> d_byte;
    hn::StoreU(hn::DemoteTo(d_byte, values), d_byte, out + x);
  }
  for (; x + 1 < width; ++x) {
    const std::uint32_t around = std::uint32_t{above[x - 1]} + above[x] + above[x + 1] +
                                 row[x - 1] + row[x + 1] + below[x - 1] + below[x] + below[x + 1];
    out[x] = smooth(around, row[x]);
  }
}

// The hue of vectors, with floats where hsv_of() and rgb_of() need doubles. The bytes are the same
// for all colours, and for all values of hue, saturation and value: tests try them all.

/// The quotient of whole numbers below 2^24, rounded down.  REQUIRES: it is less than 256.
HWY_INLINE VFloat quotient(VFloat dividend, VFloat divisor) {
  const DFloat d;
  // The estimate is at most one too large or too small; the remainder is exact.
  const VFloat estimate = hn::Floor(hn::Mul(dividend, hn::ApproximateReciprocal(divisor)));
  const VFloat rest = hn::Sub(dividend, hn::Mul(estimate, divisor));
  const VFloat one = hn::Set(d, 1);
  const VFloat up = hn::IfThenElseZero(hn::Ge(rest, divisor), one);
  const VFloat down = hn::IfThenElseZero(hn::Lt(rest, hn::Zero(d)), one);
  return hn::Sub(hn::Add(estimate, up), down);
}

/// hsv_of(pixel).h. The two divisions are those of its definition.
HWY_INLINE VInt hue_of(VInt r, VInt g, VInt b, VInt high, VInt low) {
  const DFloat d;
  const auto red = hn::Eq(r, high);
  const auto green = hn::Eq(g, high);
  const VFloat range = hn::Max(hn::ConvertTo(d, hn::Sub(high, low)), hn::Set(d, 1));
  const VInt middle = hn::Sub(hn::Add(hn::Add(r, g), b), hn::Add(high, low));
  const VFloat part = hn::Div(hn::ConvertTo(d, hn::Sub(high, middle)), range);
  // From -1, 1 or 3 sixths of the circle on, or back from the next.
  const VInt ahead =
      hn::IfThenElse(red, hn::Sub(b, g), hn::IfThenElse(green, hn::Sub(r, b), hn::Sub(g, r)));
  const VInt bound = hn::IfThenElse(red, hn::Zero(DInt()), hn::Set(DInt(), -1));
  const auto rises = hn::RebindMask(d, hn::Gt(ahead, bound));
  const VFloat from =
      hn::IfThenElse(hn::RebindMask(d, red), hn::Set(d, -1),
                     hn::IfThenElse(hn::RebindMask(d, green), hn::Set(d, 1), hn::Set(d, 3)));
  const VFloat sixths =
      hn::IfThenElse(rises, hn::Add(from, part), hn::Sub(hn::Add(from, hn::Set(d, 2)), part));
  const VFloat turns = hn::Div(sixths, hn::Set(d, 6));
  const VFloat hue = hn::Add(turns, hn::IfThenElseZero(hn::Lt(turns, hn::Zero(d)), hn::Set(d, 1)));
  return hn::ConvertTo(DInt(), hn::Mul(hue, hn::Set(d, 255)));
}

/// hsv_of(pixel).s.
HWY_INLINE VInt saturation_of(VInt high, VInt low) {
  const DFloat d;
  const VFloat scaled = hn::Mul(hn::ConvertTo(d, hn::Sub(high, low)), hn::Set(d, 255));
  return hn::ConvertTo(DInt(), quotient(scaled, hn::Max(hn::ConvertTo(d, high), hn::Set(d, 1))));
}

/// value * (65025 - share) / 65025, rounded.
HWY_INLINE VInt dimmed(VFloat value, VFloat share) {
  const DFloat d;
  const VFloat whole = hn::Set(d, 65025);
  const VFloat product = hn::Mul(value, hn::Sub(whole, share));
  const VFloat estimate = hn::Round(hn::Mul(product, hn::Set(d, 1.0F / 65025)));
  const VFloat rest = hn::Sub(product, hn::Mul(estimate, whole));
  const VFloat one = hn::Set(d, 1);
  const VFloat up = hn::IfThenElseZero(hn::Gt(rest, hn::Set(d, 32512)), one);
  const VFloat down = hn::IfThenElseZero(hn::Lt(rest, hn::Set(d, -32512)), one);
  return hn::ConvertTo(DInt(), hn::Sub(hn::Add(estimate, up), down));
}

void shift_hue_in(const Planes& planes, std::uint8_t shift) {
  const DInt d;
  const DFloat d_float;
  const std::size_t step = hn::Lanes(d);
  const auto is = [&](VInt values, int value)
                      HWY_ATTR { return hn::Eq(values, hn::Set(d, value)); };
  std::size_t i = 0;
  for (; i + step <= planes.size; i += step) {
    const VInt r = load_ints(planes.r + i);
    const VInt g = load_ints(planes.g + i);
    const VInt b = load_ints(planes.b + i);
    const VInt value = hn::Max(r, hn::Max(g, b));
    const VInt low = hn::Min(r, hn::Min(g, b));
    const VInt hue =
        hn::And(hn::Add(hue_of(r, g, b, value, low), hn::Set(d, shift)), hn::Set(d, 255));
    // The sixth of the circle, 6 only for a hue of 255, and the rest of 255.
    const VInt six_hues = hn::Add(hn::ShiftLeft<2>(hue), hn::ShiftLeft<1>(hue));
    const VInt sixth =
        hn::ShiftRight<8>(hn::Add(hn::Add(six_hues, hn::Set(d, 1)), hn::ShiftRight<8>(six_hues)));
    const VInt rest = hn::Sub(six_hues, hn::Sub(hn::ShiftLeft<8>(sixth), sixth));
    const auto falls = hn::Ne(hn::And(sixth, hn::Set(d, 1)), hn::Zero(d));
    const VInt share = hn::IfThenElse(falls, rest, hn::Sub(hn::Set(d, 255), rest));
    const VFloat values = hn::ConvertTo(d_float, value);
    const VFloat saturations = hn::ConvertTo(d_float, saturation_of(value, low));
    const VInt lowest = dimmed(values, hn::Mul(saturations, hn::Set(d_float, 255)));
    const VInt middle = dimmed(values, hn::Mul(saturations, hn::ConvertTo(d_float, share)));
    const auto first = hn::Or(is(sixth, 0), is(sixth, 6));
    const auto choose = [&](auto highest_at, auto middle_at) HWY_ATTR {
      return hn::IfThenElse(highest_at, value, hn::IfThenElse(middle_at, middle, lowest));
    };
    store_ints(choose(hn::Or(first, is(sixth, 5)), hn::Or(is(sixth, 1), is(sixth, 4))),
               planes.r + i);
    store_ints(choose(hn::Or(is(sixth, 1), is(sixth, 2)), hn::Or(first, is(sixth, 3))),
               planes.g + i);
    store_ints(choose(hn::Or(is(sixth, 3), is(sixth, 4)), hn::Or(is(sixth, 2), is(sixth, 5))),
               planes.b + i);
  }
  for (; i < planes.size; ++i) {
    Hsv pixel = hsv_of({planes.r[i], planes.g[i], planes.b[i]});
    pixel.h = static_cast<std::uint8_t>(pixel.h + shift);
    const Rgb result = rgb_of(pixel);
    planes.r[i] = result.r;
    planes.g[i] = result.g;
    planes.b[i] = result.b;
  }
}

}  // namespace precache::augment::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace precache::augment {

HWY_EXPORT(sum_of_bytes_in);
HWY_EXPORT(extrema_of_in);
HWY_EXPORT(keep_bits_in);
HWY_EXPORT(invert_from_in);
HWY_EXPORT(smooth_row_in);
HWY_EXPORT(shift_hue_in);

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

void shift_hue(const Planes& planes, std::uint8_t shift) {
  HWY_DYNAMIC_DISPATCH(shift_hue_in)(planes, shift);
}

}  // namespace precache::augment
#endif
