// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "formats/bytes/half_float.hpp"
#include "reader/device/pixel_work.hpp"

/// The body of the kernel. Tests also run it on the CPU; the results equal PixelPass bit for bit.
namespace precache::device {

struct Keep {
  template <typename T>
  PRECACHE_HOST_DEVICE T operator()(T value, std::uint32_t) const {
    return value;
  }
};

template <typename Out>
struct LookUp {
  const std::uint32_t* table;
  PRECACHE_HOST_DEVICE Out operator()(std::uint8_t pixel, std::uint32_t channel) const {
    return static_cast<Out>(table[channel % 3 * 256 + pixel]);
  }
};

/// Converts between float types, which are passed as bits.
template <DType kFrom, DType kTo, typename Out>
struct Cast {
  template <typename In>
  PRECACHE_HOST_DEVICE Out operator()(In value, std::uint32_t) const {
    float number;
    if constexpr (kFrom == DType::kFloat16) {
      number = from_float16(value);
    } else if constexpr (kFrom == DType::kBfloat16) {
      number = from_bfloat16(value);
    } else {
      number = float_of(value);
    }
    if constexpr (kTo == DType::kFloat16) return to_float16(number);
    if constexpr (kTo == DType::kBfloat16) return to_bfloat16(number);
    if constexpr (kTo == DType::kFloat32) return bits_of(number);
  }
};

/// The position of an element of the result in its image.
struct Position {
  std::uint32_t channel;
  std::uint32_t y;
  std::uint32_t x;

  PRECACHE_HOST_DEVICE static Position of(const PixelWork& work, std::uint32_t element) {
    if (work.out_hwc) {
      const std::uint32_t pixel = element / work.channels;
      return {element % work.channels, pixel / work.width, pixel % work.width};
    }
    const std::uint32_t row = element / work.width;
    return {row / work.height, row % work.height, element % work.width};
  }
  PRECACHE_HOST_DEVICE void advance(const PixelWork& work) {
    if (work.out_hwc) {
      if (++channel != work.channels) return;
      channel = 0;
      if (++x != work.width) return;
      x = 0;
      ++y;
    } else {
      if (++x != work.width) return;
      x = 0;
      if (++y != work.height) return;
      y = 0;
      ++channel;
    }
  }
  /// The index of the stored element that goes here.
  PRECACHE_HOST_DEVICE std::uint32_t source(const PixelWork& work,
                                            const AugmentationDraw& choice) const {
    const std::uint32_t row = choice.y + y;
    const std::uint32_t column = choice.x + (choice.flip ? work.width - 1 - x : x);
    if (work.in_hwc) return (row * work.in_width + column) * work.channels + channel;
    return (channel * work.in_height + row) * work.in_width + column;
  }
};

/// The number of elements from `at` on that are neighbours in the stored tensor too; in a flipped
/// row they are stored in reverse.
PRECACHE_HOST_DEVICE inline std::uint32_t run_length(const PixelWork& work, const Position& at,
                                                     const AugmentationDraw& choice) {
  if (work.in_hwc != work.out_hwc && work.channels != 1) return 1;
  if (!work.out_hwc || work.channels == 1) return work.width - at.x;
  return choice.flip ? 1 : (work.width - at.x) * work.channels - at.channel;
}

/// Computes and stores one chunk: kChunkBytes of one sample, or the rest of it.
template <typename In, typename Out, typename Convert>
PRECACHE_HOST_DEVICE inline void write_chunk(const PixelWork& work, const Convert& convert,
                                             std::uint32_t sample, std::uint32_t chunk) {
  constexpr std::uint32_t kCount = kChunkBytes / sizeof(Out);
  using InPack = Pack<In, kCount>;
  using OutPack = Pack<Out, kCount>;
  const std::uint32_t elements = work.channels * work.height * work.width;
  const std::uint64_t stored = std::uint64_t{work.channels} * work.in_height * work.in_width;
  const In* const in = reinterpret_cast<const In*>(work.in) + row_of(work.rows, sample) * stored;
  const std::uint32_t first = chunk * kCount;
  Out* const out = reinterpret_cast<Out*>(work.out) + sample * std::uint64_t{elements} + first;
  const std::uint32_t count = elements - first < kCount ? elements - first : kCount;
  const AugmentationDraw choice =
      work.choices == nullptr ? AugmentationDraw() : work.choices[sample];
  Position at = Position::of(work, first);
  OutPack result;
  InPack run;
  // A flipped run is loaded from its other end.
  const std::uint32_t run_begin = at.source(work, choice) - (choice.flip ? kCount - 1 : 0);
  const bool is_run = count == kCount && run_length(work, at, choice) >= kCount &&
                      is_aligned<InPack>(in + run_begin);
  if (is_run) move_aligned(&run, reinterpret_cast<const InPack*>(in + run_begin));
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
  for (std::uint32_t i = 0; i < kCount; ++i) {
    if (i < count) {
      const In value = !is_run       ? in[at.source(work, choice)]
                       : choice.flip ? run.at[kCount - 1 - i]
                                     : run.at[i];
      result.at[i] = convert(value, at.channel);
      at.advance(work);
    }
  }
  if (count == kCount && is_aligned<OutPack>(out)) {
    move_aligned(reinterpret_cast<OutPack*>(out), &result);
  } else {
    // Unrolled, so that all indices are known; otherwise `result` would be in memory.
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (std::uint32_t i = 0; i < kCount; ++i) {
      if (i < count) out[i] = result.at[i];
    }
  }
}

template <typename In, typename Out, typename Convert>
PRECACHE_HOST_DEVICE inline void write_share(const PixelWork& work, const Convert& convert,
                                             const Share& share) {
  const std::uint32_t chunks = chunks_per_sample(work);
  for (std::uint64_t sample = share.first_sample; sample < work.samples;
       sample += share.sample_step) {
    for (std::uint64_t chunk = share.first_chunk; chunk < chunks; chunk += share.chunk_step) {
      write_chunk<In, Out>(work, convert, static_cast<std::uint32_t>(sample),
                           static_cast<std::uint32_t>(chunk));
    }
  }
}

template <DType kFrom, typename In>
PRECACHE_HOST_DEVICE inline void cast_share(const PixelWork& work, const Share& share) {
  using Half = std::uint16_t;
  using Full = std::uint32_t;
  if (work.out_type == kFrom) {
    write_share<In, In>(work, Keep(), share);
  } else if (work.out_type == DType::kFloat16) {
    write_share<In, Half>(work, Cast<kFrom, DType::kFloat16, Half>(), share);
  } else if (work.out_type == DType::kBfloat16) {
    write_share<In, Half>(work, Cast<kFrom, DType::kBfloat16, Half>(), share);
  } else {
    write_share<In, Full>(work, Cast<kFrom, DType::kFloat32, Full>(), share);
  }
}

PRECACHE_HOST_DEVICE inline void pixel_share(const PixelWork& work, const std::uint32_t* table,
                                             const Share& share) {
  using Pixel = std::uint8_t;
  if (work.out_type == DType::kUint8) {
    write_share<Pixel, Pixel>(work, Keep(), share);
  } else if (work.out_type == DType::kFloat32) {
    write_share<Pixel, std::uint32_t>(work, LookUp<std::uint32_t>{table}, share);
  } else {
    write_share<Pixel, std::uint16_t>(work, LookUp<std::uint16_t>{table}, share);
  }
}

/// The work of one thread, once its block has the table. The first thread of a sample copies the
/// label. The types are chosen out here: a choice in the loops cost 224 registers.
PRECACHE_HOST_DEVICE inline void run_thread(const PixelWork& work, const std::uint32_t* table,
                                            const Share& share) {
  if (share.first_chunk == 0 && work.labels_out != nullptr) {
    for (std::uint64_t sample = share.first_sample; sample < work.samples;
         sample += share.sample_step) {
      work.labels_out[sample] = work.labels_in[row_of(work.label_rows, sample)];
    }
  }
  switch (work.in_type) {
    case DType::kUint8:
      return pixel_share(work, table, share);
    case DType::kFloat16:
      return cast_share<DType::kFloat16, std::uint16_t>(work, share);
    case DType::kBfloat16:
      return cast_share<DType::kBfloat16, std::uint16_t>(work, share);
    case DType::kFloat32:
      return cast_share<DType::kFloat32, std::uint32_t>(work, share);
  }
}

}  // namespace precache::device
