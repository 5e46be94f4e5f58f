// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace precache::augment {

/// blend() with one factor, as tables of bytes by the difference of `from` and the pixel.
///
/// `base` is the pixel if the factor is at least 1, and `from` otherwise. Where the pixel is
/// larger, the result is base + up.change[difference], and otherwise base -
/// down.change[difference]. Both saturate. A result of at least `limit[difference]` is then one
/// larger: blend() adds two floats, and a sum just below a whole number becomes that number if it
/// is large enough.
struct BlendTable {
  struct Direction {
    std::array<std::uint8_t, 256> change;
    std::array<std::uint8_t, 256> limit;
  };
  bool base_is_pixel = false;
  Direction up;
  Direction down;
};

/// The least whole number below which `short_of` away from the next one is lost by rounding, or
/// 255.
inline std::uint8_t rounding_limit(float short_of) {
  const float scaled = short_of * 0x1p24F;  // a float in [2^n, 2^(n+1)) has steps of 2^(n-23)
  for (std::uint32_t limit = 1; limit < 256; limit *= 2) {
    if (static_cast<float>(limit) >= scaled) return static_cast<std::uint8_t>(limit);
  }
  return 255;
}

/// nullopt if the factor is negative, very large or not a number.
inline std::optional<BlendTable> blend_table(float factor) {
  constexpr float kLargest = 4096;  // fractions of larger products lose their bits
  if (!(factor >= 0 && factor <= kLargest)) return std::nullopt;
  BlendTable table;
  table.base_is_pixel = factor >= 1;
  const auto fill = [](BlendTable::Direction& direction, std::size_t difference,
                       std::int32_t change, float short_of) {
    direction.change[difference] = static_cast<std::uint8_t>(change > 255 ? 255 : change);
    direction.limit[difference] = short_of > 0x1p-17F ? 255 : rounding_limit(short_of);
  };
  for (std::int32_t difference = 0; difference < 256; ++difference) {
    const float product = factor * static_cast<float>(difference);
    const auto whole = static_cast<std::int32_t>(product);
    const float rest = product - static_cast<float>(whole);
    const std::int32_t change = table.base_is_pixel ? whole - difference : whole;
    // A rest this small or large is lost in every sum.
    const std::int32_t up = rest >= 1 - 0x1p-25F ? 1 : 0;
    const std::int32_t down = rest > 0x1p-25F ? 1 : 0;
    const auto i = static_cast<std::size_t>(difference);
    fill(table.up, i, change + up, up == 1 ? 1 : 1 - rest);
    fill(table.down, i, change + down, down == 1 ? rest : 1);
  }
  return table;
}

}  // namespace precache::augment
