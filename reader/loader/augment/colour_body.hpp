// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "formats/bytes/host_device.hpp"

/// The definition of the colour operations for one pixel. All results equal those of Pillow 13.
namespace precache::augment {

struct Rgb {
  std::uint8_t r, g, b;
};

struct Hsv {
  std::uint8_t h, s, v;
};

/// `Image.convert("L")`.
PRECACHE_HOST_DEVICE inline std::uint8_t luma(std::uint32_t r, std::uint32_t g, std::uint32_t b) {
  return static_cast<std::uint8_t>((r * 19595 + g * 38470 + b * 7471 + 0x8000) >> 16);
}

/// `Image.blend`: a factor of 0 gives `from`, 1 gives `pixel`, and larger ones exaggerate.
PRECACHE_HOST_DEVICE inline std::uint8_t blend(std::uint8_t from, std::uint8_t pixel,
                                               float factor) {
  const float change = factor * static_cast<float>(int{pixel} - int{from});
  const float value = static_cast<float>(from) + change;
  return value <= 0 ? 0 : value >= 255 ? 255 : static_cast<std::uint8_t>(value);
}

/// `ImageFilter.SMOOTH` in the middle of 3x3 pixels; `around` is the sum of the other eight.
/// Pillow computes with floats, but no sum is near enough to a half for a difference.
PRECACHE_HOST_DEVICE inline std::uint8_t smooth(std::uint32_t around, std::uint32_t middle) {
  return static_cast<std::uint8_t>((2 * (around + 5 * middle) + 13) / 26);
}

/// `Image.convert("HSV")`, whose three values are bytes.
PRECACHE_HOST_DEVICE inline Hsv hsv_of(Rgb pixel) {
  const int r = pixel.r, g = pixel.g, b = pixel.b;
  const int high = r > g ? (r > b ? r : b) : (g > b ? g : b);
  const int low = r < g ? (r < b ? r : b) : (g < b ? g : b);
  if (high == low) return {0, 0, static_cast<std::uint8_t>(high)};
  // Where Pillow mixes float and double, so does this, since the results are truncated.
  const float range = static_cast<float>(high - low);
  const float saturation = range / static_cast<float>(high);
  const float red = static_cast<float>(high - r) / range;
  const float green = static_cast<float>(high - g) / range;
  const float blue = static_cast<float>(high - b) / range;
  float hue;
  if (r == high) {
    hue = blue - green;
  } else if (g == high) {
    hue = static_cast<float>(2.0 + static_cast<double>(red) - static_cast<double>(blue));
  } else {
    hue = static_cast<float>(4.0 + static_cast<double>(green) - static_cast<double>(red));
  }
  const double turns = static_cast<double>(hue) / 6.0 + 1.0;
  hue = static_cast<float>(turns >= 1.0 ? turns - 1.0 : turns);
  return {static_cast<std::uint8_t>(static_cast<double>(hue) * 255.0),
          static_cast<std::uint8_t>(static_cast<double>(saturation) * 255.0),
          static_cast<std::uint8_t>(high)};
}

/// The conversion of HSV to RGB.
PRECACHE_HOST_DEVICE inline Rgb rgb_of(Hsv pixel) {
  const std::uint8_t value = pixel.v;
  if (pixel.s == 0) return {value, value, value};
  const int sixth = pixel.h * 6 / 255;
  const auto part =
      static_cast<float>(static_cast<double>(pixel.h) * 6.0 / 255.0 - static_cast<double>(sixth));
  const auto saturation = static_cast<float>(static_cast<double>(pixel.s) / 255.0);
  const auto scaled = [value](double share) {
    return static_cast<std::uint8_t>(static_cast<double>(value) * share + 0.5);
  };
  const std::uint8_t lowest = scaled(1.0 - static_cast<double>(saturation));
  const std::uint8_t falling = scaled(1.0 - static_cast<double>(saturation * part));
  const std::uint8_t rising =
      scaled(1.0 - static_cast<double>(saturation) * (1.0 - static_cast<double>(part)));
  switch (sixth) {
    case 1:
      return {falling, value, lowest};
    case 2:
      return {lowest, value, rising};
    case 3:
      return {lowest, falling, value};
    case 4:
      return {rising, lowest, value};
    case 5:
      return {value, lowest, falling};
    default:  // 0, and 6 of the hue 255
      return {value, rising, lowest};
  }
}

}  // namespace precache::augment
