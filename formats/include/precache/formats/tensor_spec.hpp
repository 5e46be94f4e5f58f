// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "precache/formats/dtype.hpp"

namespace precache {

/// The order of an image tensor's axes.
enum class Layout { kChw, kHwc };
inline constexpr std::array kAllLayouts{Layout::kChw, Layout::kHwc};

[[nodiscard]] std::string_view name(Layout layout);
/// Throws InvalidArgument for anything but "chw" and "hwc".
[[nodiscard]] Layout parse_layout(std::string_view name);

/// The type and shape of every image of a dataset.
struct TensorSpec {
  DType dtype = DType::kUint8;
  Layout layout = Layout::kChw;
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  std::uint32_t channels = 0;

  /// The extents in the order of the axes.
  [[nodiscard]] std::array<std::uint32_t, 3> shape() const;
  /// Throws InvalidArgument if the product does not fit 64 bits.
  [[nodiscard]] std::uint64_t size_bytes() const;
  /// As in "uint8 3x224x224 chw".
  [[nodiscard]] std::string text() const;
  bool operator==(const TensorSpec&) const = default;
};

}  // namespace precache
