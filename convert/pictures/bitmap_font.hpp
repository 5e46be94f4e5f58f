// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

/// A font of our own, for text that is drawn into pixels: ASCII, all letters of one width.
namespace precache::bitmap_font {

inline constexpr std::uint32_t kWidth = 5;
inline constexpr std::uint32_t kHeight = 9;   // two rows of them below the line
inline constexpr std::uint32_t kAdvance = 6;  // from letter to letter

/// Whether a pixel of a letter is set; what is no printable ASCII is drawn as a box.
/// REQUIRES: x < kWidth, y < kHeight.
[[nodiscard]] bool is_set(char letter, std::uint32_t x, std::uint32_t y);

}  // namespace precache::bitmap_font
