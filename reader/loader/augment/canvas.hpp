// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "precache/formats/tensor_spec.hpp"
#include "reader/loader/augment/geometry.hpp"
#include "reader/loader/augment/planar_image.hpp"
#include "reader/loader/augment/resampler.hpp"
#include "reader/loader/pixel_kernels.hpp"

namespace precache::augment {

/// The images between operations, which a thread keeps from one sample to the next.
struct CanvasMemory {
  PlanarImage image;
  PlanarImage spare;
  ResampleScratch resample;
};

/// The picture of one sample while operations change it. It is a rectangle of the stored tensor at
/// first: crops and flips are only remembered until something needs the pixels.
class Canvas {
 public:
  /// Borrows both. REQUIRES: `tensor` has the size of `stored`.
  Canvas(std::span<const std::byte> tensor, const TensorSpec& stored, CanvasMemory& memory);

  [[nodiscard]] const ImageShape& shape() const { return shape_; }

  /// REQUIRES: the rectangle is in the image.
  void crop(const Rectangle& rectangle);
  /// A rectangle of the padded image. REQUIRES: uint8 if it has pixels of the border.
  void crop(const Rectangle& rectangle, const Border& border);
  void flip() { flipped_ = !flipped_; }
  /// REQUIRES: uint8, and so for change().
  void resample(const Resampler& resampler);
  /// Calls `change(image, spare)`, which leaves its result in `image`.
  template <typename Change>
  void change(const Change& change) {
    settle();
    change(memory_.image, memory_.spare);
    hold_image();
  }

  /// Sets the source of a job: the place, distances and type of the pixels, their number and
  /// whether to mirror them.
  void set_source(PixelJob& job) const;

 private:
  [[nodiscard]] std::size_t offset(const Rectangle& rectangle) const;
  [[nodiscard]] PlanarWindow window() const;
  [[nodiscard]] bool is_interleaved() const { return side_.channel == 1 && shape_.channels != 1; }
  void settle();
  void hold_image();

  CanvasMemory& memory_;
  const std::byte* first_;
  PixelJob::Side side_;
  DType type_;
  ImageShape shape_;
  const std::byte* end_;
  bool flipped_ = false;
  bool is_image_ = false;  // all of memory_.image, as it is
};

}  // namespace precache::augment
