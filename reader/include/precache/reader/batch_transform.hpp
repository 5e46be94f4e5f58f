// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "precache/formats/dtype.hpp"
#include "precache/formats/normalization.hpp"
#include "precache/formats/tensor_spec.hpp"
#include "precache/reader/augmentation.hpp"

namespace precache {

enum class CropPosition { kRandom, kCenter };

/// The size and position of a crop, which must not be larger than the stored tensors.
struct Crop {
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  CropPosition place = CropPosition::kRandom;
};

struct ImageSize {
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  bool operator==(const ImageSize&) const = default;
};

/// The size of tensors from an epoch on.
struct EpochSize {
  std::uint64_t epoch = 0;
  ImageSize size{};
};

/// The changes that are made to stored tensors when they are copied into a batch; by default none.
///
/// A uint8 pixel x that becomes a float is x/255, then (x/255 - mean) / std with `normalize`.
/// Tensors that are stored as floats can be cropped, flipped, re-ordered and cast to another float
/// type, but neither normalised nor made uint8.
struct BatchTransform {
  std::optional<Crop> crop{};
  bool flip = false;  // mirror half of the samples, chosen at random, left to right
  std::optional<Normalization> normalize{};
  std::optional<DType> dtype{};    // none: float32 with `normalize`, else as stored
  std::optional<Layout> layout{};  // none: as stored

  /// Random changes of uint8 pixels, before they are normalised; instead of `crop` and `flip`.
  Augmentation augmentation{};
  /// Several tensors of each sample, each by its own list; instead of `augmentation`. The record is
  /// read once.
  std::vector<Augmentation> views{};
  /// Other sizes of the first view's tensors as training proceeds, each up to the next epoch that
  /// is named. The crop, or the last operation that sets a size, makes them.
  std::vector<EpochSize> sizes{};
  /// Batches have memory for this size, so set_size() may ask for as many pixels; none: the largest
  /// of the options.
  std::optional<ImageSize> max_size{};
  /// The value of masks where a border or a place outside the image is shown, such as the class
  /// that losses ignore; none: the `fill` of each operation, which must then be one value, or 0.
  std::optional<std::uint8_t> mask_fill{};

  [[nodiscard]] bool has_lists() const { return !augmentation.empty() || !views.empty(); }
  /// The spec of transformed tensors, of the first view if there are several, without `sizes`.
  /// Throws InvalidArgument if the parts contradict each other or do not fit the stored tensors.
  [[nodiscard]] TensorSpec result(const TensorSpec& stored) const;
};

}  // namespace precache
