// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "precache/formats/dtype.hpp"
#include "precache/formats/normalization.hpp"
#include "precache/formats/tensor_spec.hpp"

namespace precache {

/// Where a crop is taken.
enum class CropPosition { kRandom, kCenter };

struct Crop {
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  CropPosition place = CropPosition::kRandom;
};

/// What becomes of stored tensors on their way into a batch; by default nothing.
///
/// A uint8 pixel x that becomes a float is x/255, normalised if asked. Tensors stored as floats can
/// be cropped, flipped, re-ordered and cast to another float type, but not normalised or made
/// uint8.
struct BatchTransform {
  std::optional<Crop> crop;
  bool flip = false;  // left and right change places in a random half of the samples
  std::optional<Normalization> normalize;
  std::optional<DType> dtype;
  std::optional<Layout> layout;

  /// What tensors become. Throws InvalidArgument if the parts do not fit together or the stored
  /// tensors.
  [[nodiscard]] TensorSpec result(const TensorSpec& stored) const;
};

}  // namespace precache
