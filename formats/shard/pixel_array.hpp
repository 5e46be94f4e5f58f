// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "precache/formats/tensor_spec.hpp"

namespace precache {

/// Types of numbers in third-party arrays, in the machine's byte order. Other types are converted
/// to one of these.
enum class PixelType { kUint8, kUint16, kInt32, kFloat32 };

[[nodiscard]] constexpr std::uint64_t size_of(PixelType type) {
  return type == PixelType::kUint8 ? 1 : type == PixelType::kUint16 ? 2 : 4;
}

/// An array that is an image with one, three or four channels.
struct PixelArray {
  PixelType type = PixelType::kUint8;
  Layout layout = Layout::kHwc;
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  std::uint32_t channels = 0;

  [[nodiscard]] std::uint64_t size_bytes() const {
    return std::uint64_t{height} * width * channels * size_of(type);
  }
};

}  // namespace precache
