// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "precache/formats/normalization.hpp"
#include "precache/formats/tensor_spec.hpp"

namespace precache {

enum class Fit { kCrop, kStretch, kPad };
enum class Filter { kNearest, kBox, kBilinear, kBicubic, kLanczos };
enum class Color { kRgb, kGray };

[[nodiscard]] std::string_view name(Fit fit);
[[nodiscard]] std::string_view name(Filter filter);
[[nodiscard]] std::string_view name(Color color);

/// The way from an encoded image to a tensor. Two recipes that compare equal give equal bytes.
struct Recipe {
  std::uint32_t height = 224;
  std::uint32_t width = 224;
  Fit fit = Fit::kCrop;
  /// Length of the shorter side before the crop; 0: the larger of height and width.
  std::uint32_t resize = 0;
  Filter filter = Filter::kBilinear;
  std::uint8_t pad_value = 0;
  DType dtype = DType::kUint8;
  std::optional<Normalization> normalize;
  Layout layout = Layout::kChw;
  Color color = Color::kRgb;
  bool apply_exif = true;

  /// Throws InvalidArgument if the parts do not fit together or a size is out of range.
  void validate() const;
  [[nodiscard]] std::uint32_t shorter_side() const;
  [[nodiscard]] TensorSpec spec() const;
  /// A JSON object, the same for equal recipes.
  [[nodiscard]] std::string to_json() const;
};

}  // namespace precache
