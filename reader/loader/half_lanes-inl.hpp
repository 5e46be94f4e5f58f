// SPDX-License-Identifier: Apache-2.0
// Included once for each instruction set, by kernels that Highway compiles for each.
#if defined(PRECACHE_HALF_LANES_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef PRECACHE_HALF_LANES_INL
#undef PRECACHE_HALF_LANES_INL
#else
#define PRECACHE_HALF_LANES_INL
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "formats/bytes/half_float.hpp"
#include "precache/formats/dtype.hpp"

HWY_BEFORE_NAMESPACE();
namespace precache::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using DFloat = hn::ScalableTag<float>;
using VFloat = hn::Vec<DFloat>;
using DBits = hn::Rebind<std::uint32_t, DFloat>;
using DHalf = hn::Rebind<std::uint16_t, DFloat>;
using VBits = hn::Vec<DBits>;

/// REQUIRES: lanes below 2^16.
HWY_INLINE hn::Vec<DHalf> low_halves(VBits bits) {
  const hn::Rebind<std::int32_t, DFloat> d;
  return hn::DemoteTo(DHalf(), hn::BitCast(d, bits));
}

/// The bfloat16 bits of a float that is not NaN.
HWY_INLINE VBits bfloat16_of_number(VBits bits) {
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(DBits(), 1));
  return hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(DBits(), 0x7fff))));
}

/// Converts lanes of a stored type to floats and back, exactly like half_float.hpp does with one
/// value. Integer arithmetic is the same on every machine and handles subnormals and NaN.
template <DType kType>
struct Lane;

template <>
struct Lane<DType::kFloat32> {
  using T = float;
  static float widen(float x) { return x; }
  static float narrow(float x) { return x; }
  static HWY_INLINE VFloat widen(VFloat x) { return x; }
  static HWY_INLINE VFloat narrow(VFloat x) { return x; }
};

template <>
struct Lane<DType::kBfloat16> {
  using T = std::uint16_t;
  static float widen(std::uint16_t x) { return from_bfloat16(x); }
  static std::uint16_t narrow(float x) { return to_bfloat16(x); }
  static HWY_INLINE VFloat widen(hn::Vec<DHalf> x) {
    return hn::BitCast(DFloat(), hn::ShiftLeft<16>(hn::PromoteTo(DBits(), x)));
  }
  static HWY_INLINE hn::Vec<DHalf> narrow(VFloat x) {
    const VBits bits = hn::BitCast(DBits(), x);
    const VBits nan = hn::Or(hn::ShiftRight<16>(bits), hn::Set(DBits(), 0x40));
    return low_halves(
        hn::IfThenElse(hn::RebindMask(DBits(), hn::IsNaN(x)), nan, bfloat16_of_number(bits)));
  }
};

template <>
struct Lane<DType::kFloat16> {
  using T = std::uint16_t;
  static float widen(std::uint16_t x) { return from_float16(x); }
  static std::uint16_t narrow(float x) { return to_float16(x); }
  static HWY_INLINE VFloat widen(hn::Vec<DHalf> x) {
    const DBits d;
    const VBits bits = hn::PromoteTo(d, x);
    const VBits magnitude = hn::And(bits, hn::Set(d, 0x7fff));
    const VBits sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(d, 0x8000)));
    const VBits normal = hn::ShiftLeft<13>(hn::Add(magnitude, hn::Set(d, 112U << 10)));
    const VBits subnormal =
        hn::BitCast(d, hn::Mul(hn::ConvertTo(DFloat(), hn::BitCast(DSigned(), magnitude)),
                               hn::Set(DFloat(), 0x1p-24F)));
    const VBits special = hn::Or(hn::ShiftLeft<13>(magnitude), hn::Set(d, 0x7f800000));
    VBits result = hn::IfThenElse(less(magnitude, 0x0400), subnormal, normal);
    result = hn::IfThenElse(less(magnitude, 0x7c00), result, special);
    return hn::BitCast(DFloat(), hn::Or(result, sign));
  }
  static HWY_INLINE hn::Vec<DHalf> narrow(VFloat x) {
    const DBits d;
    const VBits bits = hn::BitCast(d, x);
    const VBits magnitude = hn::And(bits, hn::Set(d, 0x7fffffff));
    const VBits sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 0x8000));
    const VBits rebased = hn::Sub(magnitude, hn::Set(d, 112U << 23));
    const VBits odd = hn::And(hn::ShiftRight<13>(rebased), hn::Set(d, 1));
    const VBits normal = hn::ShiftRight<13>(hn::Add(rebased, hn::Add(odd, hn::Set(d, 0xfff))));
    // For other numbers the product may be too large for an integer; it is not used then.
    const VBits subnormal = hn::BitCast(
        d, hn::NearestInt(hn::Mul(hn::BitCast(DFloat(), magnitude), hn::Set(DFloat(), 0x1p24F))));
    VBits result = hn::IfThenElse(less(magnitude, 0x38800000), subnormal, normal);
    result = hn::IfThenElse(less(magnitude, 0x477ff000), result, hn::Set(d, 0x7c00));
    result = hn::IfThenElse(less(magnitude, 0x7f800001), result, hn::Set(d, 0x7e00));
    return low_halves(hn::Or(result, sign));
  }

 private:
  using DSigned = hn::Rebind<std::int32_t, DFloat>;
  /// Magnitudes have no sign bit, so signed comparisons work, which every instruction set has.
  static HWY_INLINE hn::Mask<DBits> less(VBits magnitude, std::int32_t limit) {
    return hn::RebindMask(DBits(),
                          hn::Lt(hn::BitCast(DSigned(), magnitude), hn::Set(DSigned(), limit)));
  }
};

}  // namespace precache::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
