// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "formats/bytes/host_device.hpp"
#include "precache/formats/dtype.hpp"
#include "reader/loader/augmentation_draw.hpp"

/// What the kernel is given, and how its threads divide it.
namespace precache::device {

/// One batch's way from stored tensors to what was asked for; the kernel's only argument.
struct PixelWork {
  const std::byte* in = nullptr;  // tensors one after another
  std::byte* out = nullptr;       // likewise
  const AugmentationDraw* choices = nullptr;
  const std::int64_t* labels_in = nullptr;
  std::int64_t* labels_out = nullptr;
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
  /// The bits that a pixel becomes, for uint8 that becomes a float: true divisions took place when
  /// it was made. One row for each channel (and the fourth, ...: modulo 3, as ChannelRule).
  std::uint32_t table[3][256] = {};
};

constexpr std::uint32_t kTableEntries = 3 * 256;
constexpr std::uint32_t kChunkBytes = 16;  // a thread's store

PRECACHE_HOST_DEVICE inline std::uint32_t element_bytes(DType type) {
  return type == DType::kUint8 ? 1 : type == DType::kFloat32 ? 4 : 2;
}

/// Stores of a thread that make one sample; the last may be short.
PRECACHE_HOST_DEVICE inline std::uint32_t chunks_per_sample(const PixelWork& work) {
  const std::uint32_t per_chunk = kChunkBytes / element_bytes(work.out_type);
  const std::uint32_t elements = work.channels * work.height * work.width;
  return elements / per_chunk + (elements % per_chunk != 0 ? 1 : 0);
}

/// Which chunks are a thread's: of every `sample_step`-th sample every `chunk_step`-th.
struct Share {
  std::uint32_t first_sample;
  std::uint32_t sample_step;
  std::uint32_t first_chunk;
  std::uint32_t chunk_step;
};

/// Where a thread stands in its launch, in CUDA's words.
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

/// A thread's part of a block's copy of the work's table, of kTableEntries.
PRECACHE_HOST_DEVICE inline void copy_table(const PixelWork& work, const ThreadPlace& place,
                                            std::uint32_t* table) {
  for (std::uint32_t i = place.thread; i < kTableEntries; i += place.threads) {
    table[i] = work.table[i / 256][i % 256];
  }
}

}  // namespace precache::device
