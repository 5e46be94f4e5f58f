// SPDX-License-Identifier: Apache-2.0
#include "reader/loader/pixel_kernels.hpp"

// This file is compiled once for each instruction set, but this part only once.
#ifndef PRECACHE_PIXEL_KERNELS_COMMON
#define PRECACHE_PIXEL_KERNELS_COMMON

#include <hwy/cache_control.h>

#include <cstring>
#include <type_traits>

namespace precache {
namespace {

/// The rows of a crop are short, and those of a flip are read backwards. The processor's own
/// prefetching does not handle that: flipped images waited half of the time.
inline void prefetch_row(const std::byte* row, std::size_t distance_bytes,
                         std::size_t width_bytes) {
  constexpr std::size_t kRowsAhead = 8;
  constexpr std::size_t kLine = 64;
  // A number, not a pointer: the rows ahead may be past the tensor, which a prefetch ignores.
  const std::uintptr_t ahead = reinterpret_cast<std::uintptr_t>(row) + kRowsAhead * distance_bytes;
  for (std::size_t x = 0; x < width_bytes; x += kLine) {
    __builtin_prefetch(reinterpret_cast<const void*>(ahead + x));
  }
}

/// The definition, element by element. Also used for tensors without vectors: rows shorter than one
/// vector, or interleaved channels that are neither one nor three.
template <typename Element>
void by_definition(const PixelJob& job) {
  using In = typename Element::In;
  auto* const out = reinterpret_cast<typename Element::T*>(job.out);
  for (std::size_t channel = 0; channel < job.channels; ++channel) {
    const ChannelRule& rule = (*job.rules)[channel % 3];
    const std::size_t in_step = job.in_side.channel == 1 ? job.channels : 1;
    const std::size_t out_step = job.out_side.channel == 1 ? job.channels : 1;
    for (std::size_t y = 0; y < job.height; ++y) {
      const std::size_t in_row = y * job.in_side.row + channel * job.in_side.channel;
      auto* const row = out + y * job.out_side.row + channel * job.out_side.channel;
      for (std::size_t x = 0; x < job.width; ++x) {
        const std::size_t from = job.flip ? job.width - 1 - x : x;
        In element;
        std::memcpy(&element, job.in + (in_row + from * in_step) * sizeof element, sizeof element);
        row[x * out_step] = Element::one(rule, element);
      }
    }
  }
}

}  // namespace
}  // namespace precache

#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "reader/loader/pixel_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "reader/loader/half_lanes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace precache::HWY_NAMESPACE {

template <typename V, typename D, typename T>
HWY_INLINE void store(V v, D d, T* out, bool stream) {
  // A streamed store of Highway writes at least 16 bytes.
  if constexpr (hn::MaxLanes(d) * sizeof(T) >= 16) {
    if (stream) return hn::Stream(v, d, out);
  }
  hn::StoreU(v, d, out);
}

/// The constants of a channel as vectors.
template <PixelMath kMath>
struct FloatMath {
  VFloat a, b, c;  // scale and offset, or mean, std and its inverse
  explicit FloatMath(const ChannelRule& rule) {
    const DFloat d;
    a = hn::Set(d, kMath == PixelMath::kAffine ? rule.scale : rule.mean);
    b = hn::Set(d, kMath == PixelMath::kAffine ? rule.offset : rule.std);
    c = hn::Set(d, rule.inverse_std);
  }
  HWY_INLINE VFloat operator()(VFloat x) const {
    if constexpr (kMath == PixelMath::kAffine) {
      return hn::MulAdd(x, a, b);
    } else {
      const DFloat d;
      const VFloat centred = hn::Sub(divide(x, hn::Set(d, 255.0F), hn::Set(d, 1.0F / 255.0F)), a);
      return divide(centred, b, c);
    }
  }
  // The remainder of a multiply-add is exact, so one step corrects the last bit.
  static HWY_INLINE VFloat divide(VFloat x, VFloat divisor, VFloat inverse) {
    const VFloat quotient = hn::Mul(x, inverse);
    return hn::MulAdd(hn::NegMulAdd(quotient, divisor, x), inverse, quotient);
  }
};

// A conversion of elements: the types of its vectors, one vector, and one element.
template <typename Type>
struct Moved {
  using In = Type;
  using T = Type;
  using DIn = hn::ScalableTag<Type>;
  using DOut = DIn;
  explicit Moved(const ChannelRule&) {}
  static T one(const ChannelRule&, In element) { return element; }
  HWY_INLINE hn::Vec<DOut> operator()(hn::Vec<DIn> elements) const { return elements; }
};

template <DType kFrom, DType kTo>
struct Cast {
  using In = typename Lane<kFrom>::T;
  using T = typename Lane<kTo>::T;
  using DIn = hn::Rebind<In, DFloat>;
  using DOut = hn::Rebind<T, DFloat>;
  explicit Cast(const ChannelRule&) {}
  static T one(const ChannelRule&, In element) {
    return Lane<kTo>::narrow(Lane<kFrom>::widen(element));
  }
  HWY_INLINE hn::Vec<DOut> operator()(hn::Vec<DIn> elements) const {
    return Lane<kTo>::narrow(Lane<kFrom>::widen(elements));
  }
};

template <PixelMath kMath>
struct Floats {
  using In = std::uint8_t;
  using T = float;
  using DIn = hn::Rebind<std::uint8_t, DFloat>;
  using DOut = DFloat;
  FloatMath<kMath> math;
  explicit Floats(const ChannelRule& rule) : math(rule) {}
  static T one(const ChannelRule& rule, In pixel) { return rule.floats[pixel]; }
  HWY_INLINE VFloat operator()(hn::Vec<DIn> pixels) const {
    const hn::Rebind<std::int32_t, DFloat> d32;
    return math(hn::ConvertTo(DFloat(), hn::PromoteTo(d32, pixels)));
  }
};

template <PixelMath kMath>
struct Halves : Floats<kMath> {
  using T = std::uint16_t;
  using DOut = DHalf;
  using Floats<kMath>::Floats;
  static T one(const ChannelRule& rule, std::uint8_t pixel) { return rule.halves[pixel]; }
};

template <PixelMath kMath>
struct Float16s : Halves<kMath> {
  using Halves<kMath>::Halves;
  HWY_INLINE hn::Vec<DHalf> operator()(hn::Vec<typename Halves<kMath>::DIn> pixels) const {
    const hn::Rebind<hwy::float16_t, DFloat> d16;
    return hn::BitCast(DHalf(), hn::DemoteTo(d16, Floats<kMath>::operator()(pixels)));
  }
};

template <PixelMath kMath>
struct Bfloat16s : Halves<kMath> {
  using Halves<kMath>::Halves;
  HWY_INLINE hn::Vec<DHalf> operator()(hn::Vec<typename Halves<kMath>::DIn> pixels) const {
    return low_halves(bfloat16_of_number(hn::BitCast(DBits(), Floats<kMath>::operator()(pixels))));
  }
};

template <typename D, typename V>
HWY_INLINE V reversed(D d, V v) {
  if constexpr (sizeof(hn::TFromD<D>) != 1) {
    return hn::Reverse(d, v);
  } else if constexpr (HWY_TARGET == HWY_SCALAR) {
    return v;
  } else {  // Highway reverses blocks of 16 bytes, not bytes
    alignas(16) static constexpr std::uint8_t kBackwards[16] = {15, 14, 13, 12, 11, 10, 9, 8,
                                                                7,  6,  5,  4,  3,  2,  1, 0};
    return hn::ReverseBlocks(d, hn::TableLookupBytes(v, hn::LoadDup128(d, kBackwards)));
  }
}

template <typename Element, bool kFlip>
HWY_INLINE hn::Vec<typename Element::DOut> convert(const Element& element,
                                                   hn::Vec<typename Element::DIn> pixels) {
  const auto values = element(pixels);
  if constexpr (kFlip) return reversed(typename Element::DOut(), values);
  return values;
}

/// One row of one channel.
template <typename Element, bool kFlip>
void plane_row(const Element& element, const typename Element::In* in, typename Element::T* out,
               std::size_t width, bool stream) {
  const typename Element::DIn d_in;
  const typename Element::DOut d_out;
  const std::size_t step = hn::Lanes(d_in);
  const auto at = [&](std::size_t x, bool streamed) HWY_ATTR {
    const auto* from = kFlip ? in + (width - step - x) : in + x;
    store(convert<Element, kFlip>(element, hn::LoadU(d_in, from)), d_out, out + x, streamed);
  };
  stream = stream && reinterpret_cast<std::uintptr_t>(out) % (step * sizeof *out) == 0;
  std::size_t x = 0;
  for (; x + step <= width; x += step) at(x, stream);
  if (x < width) at(width - step, false);  // repeats some pixels
}

/// One row of three channels; at least one side is interleaved.
template <typename Element, bool kFlip>
void pixel_row(const std::array<Element, 3>& elements, const PixelJob& job,
               const typename Element::In* in, typename Element::T* out) {
  const typename Element::DIn d_in;
  const typename Element::DOut d_out;
  const std::size_t step = hn::Lanes(d_in);
  const auto at = [&](std::size_t x) HWY_ATTR {
    const std::size_t from = kFlip ? job.width - step - x : x;
    hn::Vec<typename Element::DIn> r, g, b;
    if (job.in_side.channel == 1) {
      hn::LoadInterleaved3(d_in, in + from * 3, r, g, b);
    } else {
      r = hn::LoadU(d_in, in + from);
      g = hn::LoadU(d_in, in + job.in_side.channel + from);
      b = hn::LoadU(d_in, in + 2 * job.in_side.channel + from);
    }
    const auto red = convert<Element, kFlip>(elements[0], r);
    const auto green = convert<Element, kFlip>(elements[1], g);
    const auto blue = convert<Element, kFlip>(elements[2], b);
    if (job.out_side.channel == 1) {
      hn::StoreInterleaved3(red, green, blue, d_out, out + x * 3);
    } else {
      hn::StoreU(red, d_out, out + x);
      hn::StoreU(green, d_out, out + job.out_side.channel + x);
      hn::StoreU(blue, d_out, out + 2 * job.out_side.channel + x);
    }
  };
  std::size_t x = 0;
  for (; x + step <= job.width; x += step) at(x);
  if (x < job.width) at(job.width - step);
}

template <typename Element, bool kFlip>
void all_rows(const PixelJob& job) {
  using In = typename Element::In;
  using T = typename Element::T;
  const auto& rules = *job.rules;
  const In* const in = reinterpret_cast<const In*>(job.in);
  T* const out = reinterpret_cast<T*>(job.out);
  const bool planes = job.channels == 1 || (job.in_side.channel != 1 && job.out_side.channel != 1);
  if (!planes) {
    const std::array<Element, 3> elements{Element(rules[0]), Element(rules[1]), Element(rules[2])};
    for (std::size_t y = 0; y < job.height; ++y) {
      pixel_row<Element, kFlip>(elements, job, in + y * job.in_side.row,
                                out + y * job.out_side.row);
    }
    return;
  }
  // Rows without gaps between them are one long row.
  const bool joined = !kFlip && job.in_side.row == job.width && job.out_side.row == job.width;
  const std::size_t rows = joined ? 1 : job.height;
  const std::size_t width = joined ? job.width * job.height : job.width;
  for (std::size_t channel = 0; channel < job.channels; ++channel) {
    const Element element(rules[channel % 3]);
    const In* const in_plane = in + channel * job.in_side.channel;
    T* const out_plane = out + channel * job.out_side.channel;
    for (std::size_t y = 0; y < rows; ++y) {
      const In* const row = in_plane + y * job.in_side.row;
      if (!joined) {
        prefetch_row(reinterpret_cast<const std::byte*>(row), job.in_side.row * sizeof(In),
                     width * sizeof(In));
      }
      plane_row<Element, kFlip>(element, row, out_plane + y * job.out_side.row, width, job.stream);
    }
  }
}

template <typename Element>
void all_rows(const PixelJob& job) {
  const bool side_by_side = job.in_side.channel == 1 || job.out_side.channel == 1;
  // A "vector" of one lane is loaded like an element, so it must be aligned.
  constexpr bool kLoadsAnywhere = HWY_TARGET != HWY_SCALAR || sizeof(typename Element::In) == 1;
  const bool has_vectors = kLoadsAnywhere && job.width >= hn::Lanes(typename Element::DIn()) &&
                           (!side_by_side || job.channels == 1 || job.channels == 3);
  if (!has_vectors) return by_definition<Element>(job);
  job.flip ? all_rows<Element, true>(job) : all_rows<Element, false>(job);
}

/// Converts pixels with the arithmetic of kMath, or by the table.
template <PixelMath kMath>
void pixels(const PixelJob& job) {
  const auto with = [&]<typename Element>(std::type_identity<Element>) {
    kMath == PixelMath::kTable ? by_definition<Element>(job) : all_rows<Element>(job);
  };
  if (job.out_type == DType::kUint8) return all_rows<Moved<std::uint8_t>>(job);
  if (job.out_type == DType::kFloat16) return with(std::type_identity<Float16s<kMath>>());
  if (job.out_type == DType::kBfloat16) return with(std::type_identity<Bfloat16s<kMath>>());
  with(std::type_identity<Floats<kMath>>());
}

template <DType kFrom, DType kTo>
void floats(const PixelJob& job) {
  using Bits = std::conditional_t<kFrom == DType::kFloat32, std::uint32_t, std::uint16_t>;
  all_rows<std::conditional_t<kFrom == kTo, Moved<Bits>, Cast<kFrom, kTo>>>(job);
}

template <DType kFrom>
void floats(const PixelJob& job) {
  if (job.out_type == DType::kFloat16) return floats<kFrom, DType::kFloat16>(job);
  if (job.out_type == DType::kBfloat16) return floats<kFrom, DType::kBfloat16>(job);
  floats<kFrom, DType::kFloat32>(job);
}

void stream_copy(const std::byte* in, std::size_t size, std::byte* out) {
  const hn::ScalableTag<std::uint8_t> d;
  const std::size_t step = hn::Lanes(d);
  const auto* from = reinterpret_cast<const std::uint8_t*>(in);
  auto* to = reinterpret_cast<std::uint8_t*>(out);
  std::size_t i = 0;
  if (step >= 16 && reinterpret_cast<std::uintptr_t>(out) % step == 0) {
    for (; i + 4 * step <= size; i += 4 * step) {
      const auto a = hn::LoadU(d, from + i);
      const auto b = hn::LoadU(d, from + i + step);
      const auto c = hn::LoadU(d, from + i + 2 * step);
      const auto e = hn::LoadU(d, from + i + 3 * step);
      hn::Stream(a, d, to + i);
      hn::Stream(b, d, to + i + step);
      hn::Stream(c, d, to + i + 2 * step);
      hn::Stream(e, d, to + i + 3 * step);
    }
  }
  std::memcpy(to + i, from + i, size - i);
}

void run(const PixelJob& job) {
  if (job.in_type == DType::kFloat16) return floats<DType::kFloat16>(job);
  if (job.in_type == DType::kBfloat16) return floats<DType::kBfloat16>(job);
  if (job.in_type == DType::kFloat32) return floats<DType::kFloat32>(job);
  if (job.math == PixelMath::kAffine) return pixels<PixelMath::kAffine>(job);
  if (job.math == PixelMath::kReciprocal) return pixels<PixelMath::kReciprocal>(job);
  pixels<PixelMath::kTable>(job);
}

}  // namespace precache::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace precache {

HWY_EXPORT(run);
HWY_EXPORT(stream_copy);

void run_pixels(const PixelJob& job) { HWY_DYNAMIC_DISPATCH(run)(job); }

void copy_streamed(std::span<const std::byte> in, std::byte* out) {
  HWY_DYNAMIC_DISPATCH(stream_copy)(in.data(), in.size(), out);
}

void finish_streaming() { hwy::FlushStream(); }

}  // namespace precache
#endif
