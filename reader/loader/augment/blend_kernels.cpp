// SPDX-License-Identifier: Apache-2.0
#include "reader/loader/augment/blend_kernels.hpp"

// AVX3_DL, for processors since Ice Lake and Zen 4, looks up 64 bytes of a table at once.
#define HWY_WANT_AVX3_DL
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reader/loader/augment/blend_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "reader/loader/augment/blend_table.hpp"
#include "reader/loader/augment/byte_lanes-inl.hpp"
#include "reader/loader/augment/colour_body.hpp"

HWY_BEFORE_NAMESPACE();
namespace precache::augment::HWY_NAMESPACE {

/// blend() of a vector.
HWY_INLINE VInt blended(VInt from, VInt pixels, VFloat factor) {
  const DFloat d;
  const VFloat change = hn::Mul(factor, hn::ConvertTo(d, hn::Sub(pixels, from)));
  // The sum truncates towards 0, so all below 1 becomes 0, and DemoteTo() clips the rest.
  return hn::ConvertTo(DInt(), hn::Add(hn::ConvertTo(d, from), change));
}

/// luma(). All sums are whole numbers below 2^24, which floats hold exactly.
HWY_INLINE VInt luma_of(VInt r, VInt g, VInt b) {
  const DFloat d;
  const VFloat red = hn::Mul(hn::ConvertTo(d, r), hn::Set(d, 19595));
  const VFloat green = hn::Mul(hn::ConvertTo(d, g), hn::Set(d, 38470));
  const VFloat blue = hn::Mul(hn::ConvertTo(d, b), hn::Set(d, 7471));
  const VFloat sum = hn::Add(hn::Add(red, green), hn::Add(blue, hn::Set(d, 0x8000)));
  return hn::ShiftRight<16>(hn::ConvertTo(DInt(), sum));
}

void blend_from_grey_by_floats(std::uint8_t* bytes, std::size_t size, std::uint8_t grey,
                               float factor) {
  const VInt from = hn::Set(DInt(), grey);
  const VFloat factors = hn::Set(DFloat(), factor);
  const std::size_t step = hn::Lanes(DFloat());
  std::size_t i = 0;
  for (; i + step <= size; i += step) {
    store_ints(blended(from, load_ints(bytes + i), factors), bytes + i);
  }
  for (; i < size; ++i) bytes[i] = blend(grey, bytes[i], factor);
}

void blend_from_image_by_floats(std::uint8_t* from, const std::uint8_t* bytes, std::size_t size,
                                float factor) {
  const VFloat factors = hn::Set(DFloat(), factor);
  const std::size_t step = hn::Lanes(DFloat());
  std::size_t i = 0;
  for (; i + step <= size; i += step) {
    store_ints(blended(load_ints(from + i), load_ints(bytes + i), factors), from + i);
  }
  for (; i < size; ++i) from[i] = blend(from[i], bytes[i], factor);
}

void blend_from_luma_by_floats(const Planes& planes, float factor) {
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

#if HWY_TARGET == HWY_AVX3_DL

using Bytes = __m512i;

/// The bytes from `bytes` on, at most 64 of them.
class Window {
 public:
  explicit Window(std::size_t size)
      : mask_(size >= 64 ? ~__mmask64{0} : (__mmask64{1} << size) - 1) {}
  [[nodiscard]] HWY_INLINE Bytes load(const std::uint8_t* bytes) const {
    return _mm512_maskz_loadu_epi8(mask_, bytes);
  }
  HWY_INLINE void store(Bytes values, std::uint8_t* bytes) const {
    _mm512_mask_storeu_epi8(bytes, mask_, values);
  }

 private:
  __mmask64 mask_;
};

/// A table of 256 bytes in registers.
class ByteTable {
 public:
  explicit ByteTable(const std::array<std::uint8_t, 256>& table) {
    for (std::size_t i = 0; i < 4; ++i) quarters_[i] = _mm512_loadu_si512(table.data() + 64 * i);
  }
  [[nodiscard]] HWY_INLINE Bytes operator[](Bytes index) const {
    return _mm512_mask_blend_epi8(_mm512_movepi8_mask(index),
                                  _mm512_permutex2var_epi8(quarters_[0], index, quarters_[1]),
                                  _mm512_permutex2var_epi8(quarters_[2], index, quarters_[3]));
  }

 private:
  Bytes quarters_[4];
};

/// blend() of 64 bytes.
class ByteBlend {
 public:
  explicit ByteBlend(const BlendTable& table)
      : base_is_pixel_(table.base_is_pixel ? ~__mmask64{0} : 0),
        up_(table.up.change),
        down_(table.down.change),
        up_limit_(table.up.limit),
        down_limit_(table.down.limit) {}
  [[nodiscard]] HWY_INLINE Bytes operator()(Bytes from, Bytes pixels) const {
    const Bytes difference =
        _mm512_or_si512(_mm512_subs_epu8(pixels, from), _mm512_subs_epu8(from, pixels));
    const Bytes base = _mm512_mask_blend_epi8(base_is_pixel_, from, pixels);
    const __mmask64 falls = _mm512_cmplt_epu8_mask(pixels, from);
    const Bytes result = _mm512_mask_subs_epu8(_mm512_adds_epu8(base, up_[difference]), falls, base,
                                               down_[difference]);
    const Bytes limit =
        _mm512_mask_blend_epi8(falls, up_limit_[difference], down_limit_[difference]);
    return _mm512_mask_adds_epu8(result, _mm512_cmpge_epu8_mask(result, limit), result,
                                 _mm512_set1_epi8(1));
  }

 private:
  __mmask64 base_is_pixel_;
  ByteTable up_;
  ByteTable down_;
  ByteTable up_limit_;
  ByteTable down_limit_;
};

/// luma() of 32 pixels whose values have 16 bits. The weights add up to 65536, so two products of
/// differences from the green value are enough: g + (19595 (r - g) + 7471 (b - g) + 0x8000) /
/// 65536.
HWY_INLINE Bytes luma_of_words(Bytes r, Bytes g, Bytes b) {
  const Bytes weights = _mm512_set1_epi32((7471 << 16) | 19595);
  const Bytes half = _mm512_set1_epi32(0x8000);
  const Bytes red = _mm512_sub_epi16(r, g);
  const Bytes blue = _mm512_sub_epi16(b, g);
  const Bytes low = _mm512_madd_epi16(_mm512_unpacklo_epi16(red, blue), weights);
  const Bytes high = _mm512_madd_epi16(_mm512_unpackhi_epi16(red, blue), weights);
  const Bytes change = _mm512_packs_epi32(_mm512_srai_epi32(_mm512_add_epi32(low, half), 16),
                                          _mm512_srai_epi32(_mm512_add_epi32(high, half), 16));
  return _mm512_add_epi16(g, change);
}

HWY_INLINE Bytes luma_of_bytes(Bytes r, Bytes g, Bytes b) {
  const Bytes zero = _mm512_setzero_si512();
  return _mm512_packus_epi16(
      luma_of_words(_mm512_unpacklo_epi8(r, zero), _mm512_unpacklo_epi8(g, zero),
                    _mm512_unpacklo_epi8(b, zero)),
      luma_of_words(_mm512_unpackhi_epi8(r, zero), _mm512_unpackhi_epi8(g, zero),
                    _mm512_unpackhi_epi8(b, zero)));
}

void look_up_in(std::uint8_t* bytes, std::size_t size,
                const std::array<std::uint8_t, 256>& values) {
  const ByteTable table(values);
  for (std::size_t i = 0; i < size; i += 64) {
    const Window window(size - i);
    window.store(table[window.load(bytes + i)], bytes + i);
  }
}

void blend_from_grey_in(std::uint8_t* bytes, std::size_t size, std::uint8_t grey, float factor) {
  std::array<std::uint8_t, 256> table;
  for (std::size_t i = 0; i < 256; ++i) table[i] = static_cast<std::uint8_t>(i);
  blend_from_grey_by_floats(table.data(), table.size(), grey, factor);
  look_up_in(bytes, size, table);
}

void blend_from_image_in(std::uint8_t* from, const std::uint8_t* bytes, std::size_t size,
                         float factor) {
  const std::optional<BlendTable> table = blend_table(factor);
  if (!table) return blend_from_image_by_floats(from, bytes, size, factor);
  const ByteBlend blended_bytes(*table);
  for (std::size_t i = 0; i < size; i += 64) {
    const Window window(size - i);
    window.store(blended_bytes(window.load(from + i), window.load(bytes + i)), from + i);
  }
}

void blend_from_luma_in(const Planes& planes, float factor) {
  const std::optional<BlendTable> table = blend_table(factor);
  if (!table) return blend_from_luma_by_floats(planes, factor);
  const ByteBlend blended_bytes(*table);
  for (std::size_t i = 0; i < planes.size; i += 64) {
    const Window window(planes.size - i);
    const Bytes r = window.load(planes.r + i);
    const Bytes g = window.load(planes.g + i);
    const Bytes b = window.load(planes.b + i);
    const Bytes grey = luma_of_bytes(r, g, b);
    window.store(blended_bytes(grey, r), planes.r + i);
    window.store(blended_bytes(grey, g), planes.g + i);
    window.store(blended_bytes(grey, b), planes.b + i);
  }
}

void replace_by_luma_in(const Planes& planes) {
  for (std::size_t i = 0; i < planes.size; i += 64) {
    const Window window(planes.size - i);
    const Bytes grey = luma_of_bytes(window.load(planes.r + i), window.load(planes.g + i),
                                     window.load(planes.b + i));
    window.store(grey, planes.r + i);
    window.store(grey, planes.g + i);
    window.store(grey, planes.b + i);
  }
}

std::uint64_t sum_of_luma_in(const Planes& planes) {
  Bytes sums = _mm512_setzero_si512();
  for (std::size_t i = 0; i < planes.size; i += 64) {
    const Window window(planes.size - i);  // pixels after the last count as black
    const Bytes grey = luma_of_bytes(window.load(planes.r + i), window.load(planes.g + i),
                                     window.load(planes.b + i));
    sums = _mm512_add_epi64(sums, _mm512_sad_epu8(grey, _mm512_setzero_si512()));
  }
  return static_cast<std::uint64_t>(_mm512_reduce_add_epi64(sums));
}

#else

void look_up_in(std::uint8_t* bytes, std::size_t size, const std::array<std::uint8_t, 256>& table) {
  for (std::size_t i = 0; i < size; ++i) bytes[i] = table[bytes[i]];
}

void blend_from_grey_in(std::uint8_t* bytes, std::size_t size, std::uint8_t grey, float factor) {
  blend_from_grey_by_floats(bytes, size, grey, factor);
}

void blend_from_image_in(std::uint8_t* from, const std::uint8_t* bytes, std::size_t size,
                         float factor) {
  blend_from_image_by_floats(from, bytes, size, factor);
}

void blend_from_luma_in(const Planes& planes, float factor) {
  blend_from_luma_by_floats(planes, factor);
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

#endif

}  // namespace precache::augment::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace precache::augment {

HWY_EXPORT(blend_from_grey_in);
HWY_EXPORT(blend_from_image_in);
HWY_EXPORT(blend_from_luma_in);
HWY_EXPORT(replace_by_luma_in);
HWY_EXPORT(sum_of_luma_in);
HWY_EXPORT(look_up_in);

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
void look_up(std::uint8_t* bytes, std::size_t size, const std::array<std::uint8_t, 256>& table) {
  HWY_DYNAMIC_DISPATCH(look_up_in)(bytes, size, table);
}

}  // namespace precache::augment
#endif
