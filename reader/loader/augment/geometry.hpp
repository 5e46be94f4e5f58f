// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "precache/reader/augmentation.hpp"
#include "precache/reader/batch_transform.hpp"
#include "reader/loader/augment/operation_random.hpp"
#include "reader/loader/augment/planar_image.hpp"
#include "reader/loader/augment/rectangle_body.hpp"
#include "reader/loader/augment/resampler.hpp"

/// The operations that choose a part of the image, its size or its direction.
namespace precache::augment {

// Throw InvalidArgument, with the names of operation and field, if an operation cannot be made with
// images of this shape.
void check(const RandomResizedCrop& operation, const ImageShape& shape);
void check(const Resize& operation, const ImageShape& shape);
void check(const CenterCrop& operation, const ImageShape& shape);
void check(const RandomCrop& operation, const ImageShape& shape);
void check(const RandomHorizontalFlip& operation, const ImageShape& shape);
void check(const RandomVerticalFlip& operation, const ImageShape& shape);
void check(const RandomQuarterTurn& operation, const ImageShape& shape);

// The size of the result.  REQUIRES: check() has passed.
[[nodiscard]] ImageSize result_size(const RandomResizedCrop& operation, const ImageShape& shape);
[[nodiscard]] ImageSize result_size(const Resize& operation, const ImageShape& shape);
[[nodiscard]] ImageSize result_size(const CenterCrop& operation, const ImageShape& shape);
[[nodiscard]] ImageSize result_size(const RandomCrop& operation, const ImageShape& shape);

/// A rectangle of the image, drawn in an original of another size if there is one.
[[nodiscard]] Rectangle choose(const RandomResizedCrop& operation, OperationRandom& random,
                               const ImageShape& shape, const std::optional<ImageSize>& original);
/// A rectangle in the padded image.
[[nodiscard]] Rectangle choose(const RandomCrop& operation, OperationRandom& random,
                               const ImageShape& shape);
/// torchvision's centre, in the image or in the padded one.
[[nodiscard]] Rectangle centre(const CenterCrop& operation, const ImageShape& shape);
/// The number of turns, below 4.
[[nodiscard]] std::uint32_t choose(const RandomQuarterTurn& operation, OperationRandom& random,
                                   const ImageShape& shape);

/// The pixels around an image.
struct Border {
  std::uint32_t left = 0;
  std::uint32_t top = 0;
  std::uint32_t right = 0;
  std::uint32_t bottom = 0;
  PaddingMode mode = PaddingMode::kConstant;
  const Fill* fill = nullptr;  // none: 0
};
[[nodiscard]] Border border_of(const RandomCrop& operation, const ImageShape& shape);
[[nodiscard]] Border border_of(const CenterCrop& operation, const ImageShape& shape);

/// True if no pixel of the rectangle, which is in the padded image, is in the border.
[[nodiscard]] bool is_inside(const Rectangle& rectangle, const Border& border,
                             const ImageShape& shape);
/// Copies a rectangle of the padded image.  REQUIRES: `out` is not the memory of the window.
void crop_padded(const PlanarWindow& window, const Border& border, const Rectangle& rectangle,
                 PlanarImage& out);

void flip_vertically(PlanarImage& image);
/// Counter-clockwise.  REQUIRES: the image is square.
void turn(PlanarImage& image, PlanarImage& spare, std::uint32_t quarters);

}  // namespace precache::augment
