// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "precache/formats/recipe.hpp"

namespace precache {

/// Writes rows of pixels into a tensor of the recipe's dtype and layout.
///
/// A pixel has 256 values per channel, so every conversion is a table that is computed once,
/// exactly.
class TensorWriter {
 public:
  explicit TensorWriter(const Recipe& recipe);

  /// Sets every element to the conversion of this pixel value.
  void fill(std::span<std::byte> tensor, std::uint8_t value) const;
  /// Writes `count` pixels to row `y`, from column `x` on.
  void write(std::span<std::byte> tensor, std::uint32_t y, std::uint32_t x,
             const std::uint8_t* pixels, std::uint32_t count) const;

 private:
  template <typename T>
  using Tables = std::array<std::array<T, 256>, 3>;

  template <typename T>
  void write_converted(const Tables<T>& tables, T* tensor, std::uint32_t y, std::uint32_t x,
                       const std::uint8_t* pixels, std::uint32_t count) const;
  void write_bytes(std::uint8_t* tensor, std::uint32_t y, std::uint32_t x,
                   const std::uint8_t* pixels, std::uint32_t count) const;

  TensorSpec spec_;
  Tables<float> floats_{};
  Tables<std::uint16_t> halves_{};  // float16 or bfloat16 bits
};

}  // namespace precache
