// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "precache/formats/dtype.hpp"

namespace precache {

/// The numbers drawn for one sample. Copied to GPUs as a whole.
struct AugmentationDraw {
  std::uint32_t y = 0;  // of the crop
  std::uint32_t x = 0;
  bool flip = false;
};

/// Three ways to compute the float of a pixel. The table is the definition; the others are used
/// only after all 256 pixels gave the same bits.
enum class PixelMath {
  kAffine,      // one multiply-add
  kReciprocal,  // multiplications by reciprocals, each corrected by its remainder
  kTable,
};

/// How the pixels of one channel become floats.
struct ChannelRule {
  float scale = 0;  // kAffine: pixel * scale + offset
  float offset = 0;
  float mean = 0;  // kReciprocal: (pixel / 255 - mean) / std
  float std = 1;
  float inverse_std = 1;
  std::array<float, 256> floats{};
  std::array<std::uint16_t, 256> halves{};  // float16 or bfloat16 bits
};

/// Turns the elements of one tensor into those of another: pixels to pixels or floats, floats to
/// floats.
struct PixelJob {
  struct Side {
    std::size_t row = 0;      // elements from a row to the next
    std::size_t channel = 0;  // elements from a channel to the next; 1: interleaved
  };
  const std::byte* in = nullptr;  // the first element of the crop, aligned or not
  Side in_side;
  DType in_type = DType::kUint8;
  std::byte* out = nullptr;
  Side out_side;
  DType out_type = DType::kUint8;
  std::size_t channels = 0;  // of the tensor
  std::size_t height = 0;    // of the crop
  std::size_t width = 0;
  bool flip = false;
  bool stream = false;                                // bypass the caches where alignment allows
  PixelMath math = PixelMath::kTable;                 // for pixels to floats
  const std::array<ChannelRule, 3>* rules = nullptr;  // likewise
};

/// Runs the job with the best instruction set of this machine.
void run_pixels(const PixelJob& job);

/// A memcpy that bypasses the caches where alignment allows, which saves reading the lines that are
/// overwritten.
void copy_streamed(std::span<const std::byte> in, std::byte* out);

/// Makes streamed writes visible to other threads.
void finish_streaming();

}  // namespace precache
