// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "precache/formats/dtype.hpp"

namespace precache {

/// Three ways from a pixel to its float. Only the table is right by definition; the others are used
/// where all 256 pixels were seen to give the table's bits.
enum class PixelMath {
  kAffine,      // one multiply-add
  kReciprocal,  // both divisions as multiplications by the reciprocal, each corrected by its
                // remainder
  kTable,
};

/// What the pixels of one channel become.
struct ChannelRule {
  float scale = 0;  // kAffine: pixel * scale + offset
  float offset = 0;
  float mean = 0;  // kReciprocal: (pixel / 255 - mean) / std
  float std = 1;
  float inverse_std = 1;
  std::array<float, 256> floats{};
  std::array<std::uint16_t, 256> halves{};  // float16 or bfloat16 bits
};

/// Elements of one tensor to those of another: pixels to pixels or floats, floats to floats.
struct PixelJob {
  struct Side {
    std::size_t row = 0;      // elements from a row to the next
    std::size_t channel = 0;  // elements from a channel to the next; 1: interleaved
  };
  const std::byte* in = nullptr;  // the first element that is wanted; need not be aligned
  Side in_side;
  DType in_type = DType::kUint8;
  std::byte* out = nullptr;
  Side out_side;
  DType out_type = DType::kUint8;
  std::size_t channels = 0;  // of the tensor
  std::size_t height = 0;    // of the part that is wanted
  std::size_t width = 0;
  bool flip = false;
  bool stream = false;                 // write past the caches where alignment allows
  PixelMath math = PixelMath::kTable;  // for pixels to floats
  const std::array<ChannelRule, 3>* rules = nullptr;  // likewise
};

/// Does the job with the best instructions of this machine.
void run_pixels(const PixelJob& job);

/// memcpy past the caches, where alignment allows: it saves reading what is about to be
/// overwritten.
void copy_streamed(std::span<const std::byte> in, std::byte* out);

/// Makes streamed writes visible to other threads.
void finish_streaming();

}  // namespace precache
