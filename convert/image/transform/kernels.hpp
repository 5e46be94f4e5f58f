// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "formats/image/taps.hpp"

/// The inner loops, for the best instruction set that the machine has.
///
/// A weight of 22 bits times a pixel of 8 needs 32-bit products. Split into a high and a low half
/// of 11 bits, two 16-bit multiply-adds do the work of four 32-bit multiplications, with the same
/// result to the last bit.
namespace precache {

/// One row's horizontal pass, with the weights of four neighbouring taps side by side for the
/// vectors.
class HorizontalPass {
 public:
  explicit HorizontalPass(const Taps& taps);
  /// `row` starts at source pixel taps.begin; `out` gets one pixel for each output and may be
  /// overrun by kRowSlack.
  void run(const std::uint8_t* row, std::uint8_t* out) const;

 private:
  bool copies_;
  std::size_t groups_ = 0;                  // of four taps, the same number for every output
  std::vector<std::uint32_t> first_bytes_;  // in the row, of each output; a multiple of four
  std::vector<std::int16_t> weights_;       // a group: 16 high halves, 16 low halves
};

/// One output row's vertical pass over `rows`, of `bytes` bytes each; all may be overrun by
/// kRowSlack.
void run_vertical_pass(std::span<const std::uint8_t* const> rows, const std::int32_t* weights,
                       std::size_t bytes, std::uint8_t* out);

/// Pixels to three planes, and to packed RGB.
void split_planes(const std::uint8_t* pixels, std::size_t count, std::uint8_t* red,
                  std::uint8_t* green, std::uint8_t* blue);
void pack_rgb(const std::uint8_t* pixels, std::size_t count, std::uint8_t* out);

}  // namespace precache
