// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "precache/formats/dtype.hpp"
#include "precache/formats/normalization.hpp"
#include "precache/formats/tensor_spec.hpp"

namespace precache {

enum class CropPosition { kRandom, kCenter };

/// The size and position of a crop, which must not be larger than the stored tensors.
struct Crop {
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  CropPosition place = CropPosition::kRandom;
};

/// The changes that are made to stored tensors when they are copied into a batch; by default none.
///
/// A uint8 pixel x that becomes a float is x/255, then (x/255 - mean) / std with `normalize`.
/// Tensors that are stored as floats can be cropped, flipped, re-ordered and cast to another float
/// type, but neither normalized nor made uint8.
struct BatchTransform {
  std::optional<Crop> crop{};
  bool flip = false;  // mirror half of the samples, chosen at random, left to right
  std::optional<Normalization> normalize{};
  std::optional<DType> dtype{};    // none: float32 with `normalize`, else as stored
  std::optional<Layout> layout{};  // none: as stored

  /// The spec of transformed tensors. Throws InvalidArgument if the parts contradict each other or
  /// do not fit the stored tensors.
  [[nodiscard]] TensorSpec result(const TensorSpec& stored) const;
};

}  // namespace precache
