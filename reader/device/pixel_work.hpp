// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "formats/bytes/host_device.hpp"
#include "precache/formats/dtype.hpp"
#include "reader/loader/pixel_kernels.hpp"

/// The argument of the kernel, and how its threads divide the work.
namespace precache::device {

/// One batch to transform; the only argument of the kernel.
struct PixelWork {
  const std::byte* in = nullptr;  // stored tensors, without gaps
  std::uint64_t in_samples = 0;   // that many
  /// For each sample of the batch, which of the tensors is its own; null: that of the same number.
  const std::uint64_t* rows = nullptr;
  std::byte* out = nullptr;                   // transformed tensors, without gaps
  const AugmentationDraw* choices = nullptr;  // null: neither crop nor flip
  const std::int64_t* labels_in = nullptr;
  std::uint64_t stored_labels = 0;            // that many
  const std::uint64_t* label_rows = nullptr;  // as `rows`
  std::int64_t* labels_out = nullptr;         // null: labels are not copied
  std::uint32_t samples = 0;
  std::uint32_t channels = 0;
  std::uint32_t in_height = 0;
  std::uint32_t in_width = 0;
  std::uint32_t height = 0;  // of the crop
  std::uint32_t width = 0;
  bool in_hwc = false;
  bool out_hwc = false;
  DType in_type = DType::kUint8;
  DType out_type = DType::kUint8;
  /// The bits of the float for each pixel, computed with true divisions; for uint8 to floats only.
  /// One row for each channel modulo 3, like ChannelRule.
  std::uint32_t table[3][256] = {};
};

/// The number of a sample's tensor or label.
PRECACHE_HOST_DEVICE inline std::uint64_t row_of(const std::uint64_t* rows, std::uint64_t sample) {
  return rows == nullptr ? sample : rows[sample];
}

constexpr std::uint32_t kTableEntries = 3 * 256;
constexpr std::uint32_t kChunkBytes = 16;  // a thread's store

/// kCount elements that one or two instructions load or store.
template <typename T, std::uint32_t kCount>
struct alignas(sizeof(T) * kCount < kChunkBytes ? sizeof(T) * kCount : kChunkBytes) Pack {
  T at[kCount];
};

template <typename T>
PRECACHE_HOST_DEVICE inline bool is_aligned(const void* at) {
  return reinterpret_cast<std::uintptr_t>(at) % alignof(T) == 0;
}

/// A memcpy() that nvcc does not split into single bytes. On the CPU it throws for addresses that a
/// GPU could not access.
template <typename To, typename From>
PRECACHE_HOST_DEVICE inline void move_aligned(To* to, const From* from) {
#ifdef __CUDA_ARCH__
  *reinterpret_cast<From*>(to) = *from;
#else
  if (!is_aligned<From>(to) || !is_aligned<From>(from)) throw std::logic_error("misaligned access");
  std::memcpy(to, from, sizeof *from);
#endif
}

PRECACHE_HOST_DEVICE inline std::uint32_t element_bytes(DType type) {
  return type == DType::kUint8 ? 1 : type == DType::kFloat32 ? 4 : 2;
}

/// The number of stores that write one sample; the last may be short.
PRECACHE_HOST_DEVICE inline std::uint32_t chunks_per_sample(const PixelWork& work) {
  const std::uint32_t per_chunk = kChunkBytes / element_bytes(work.out_type);
  const std::uint32_t elements = work.channels * work.height * work.width;
  return elements / per_chunk + (elements % per_chunk != 0 ? 1 : 0);
}

/// The chunks of a thread: every `chunk_step`-th of every `sample_step`-th sample.
struct Share {
  std::uint32_t first_sample;
  std::uint32_t sample_step;
  std::uint32_t first_chunk;
  std::uint32_t chunk_step;
};

/// The position of a thread in its launch; comments have CUDA's names.
struct ThreadPlace {
  std::uint32_t block_x;  // blockIdx
  std::uint32_t block_y;
  std::uint32_t thread;    // threadIdx
  std::uint32_t blocks_x;  // gridDim
  std::uint32_t blocks_y;
  std::uint32_t threads;  // blockDim
};

PRECACHE_HOST_DEVICE inline Share share_of(const ThreadPlace& place) {
  return {place.block_y, place.blocks_y, place.block_x * place.threads + place.thread,
          place.blocks_x * place.threads};
}

/// Copies a thread's share of the table to the block's `table`, of kTableEntries.
PRECACHE_HOST_DEVICE inline void copy_table(const PixelWork& work, const ThreadPlace& place,
                                            std::uint32_t* table) {
  for (std::uint32_t i = place.thread; i < kTableEntries; i += place.threads) {
    table[i] = work.table[i / 256][i % 256];
  }
}

}  // namespace precache::device
