// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "precache/reader/augmentation.hpp"
#include "precache/reader/batch_transform.hpp"
#include "reader/loader/augment/planar_image.hpp"
#include "reader/loader/augment/resample_kernels.hpp"
#include "reader/loader/augment/resample_tables.hpp"

namespace precache {

/// A rectangle of pixels that are stored channel by channel.
struct PlanarWindow {
  const std::uint8_t* first = nullptr;
  std::size_t row = 0;      // bytes from a row to the next
  std::size_t channel = 0;  // bytes from a channel to the next
  ImageShape shape;
  const std::uint8_t* end = nullptr;  // of the memory that may be read
};

/// The memory that a thread keeps from one image to the next.
struct ResampleScratch {
  PlanarImage pass;    // one channel between the two passes
  PlanarImage window;  // a window at the end of the readable memory
  HorizontalTable horizontal;
  VerticalTable vertical;
  std::vector<std::uint32_t> places;  // of the pixels of a row, for kNearest
};

/// Resizes rectangles of any size to one size, with the bytes of Pillow's crop() and resize().
///
/// Any number of threads may use one object at once, each with its own scratch.
class Resampler {
 public:
  Resampler(ImageSize largest_source, ImageSize resized, Interpolation interpolation);

  /// REQUIRES: no side of the window is 0 or longer than `largest_source`; `out` is not the memory
  /// of the window.
  void run(const PlanarWindow& window, PlanarImage& out, ResampleScratch& scratch) const;

 private:
  void run_plane(const PlaneRows& in, const HorizontalTable* horizontal,
                 const VerticalTable* vertical, bool vertical_first, std::uint8_t* out,
                 ResampleScratch& scratch) const;
  void run_nearest(const PlanarWindow& window, PlanarImage& out, ResampleScratch& scratch) const;

  ImageSize resized_;
  Interpolation interpolation_;
  TableCache<HorizontalTable> horizontal_;
  TableCache<VerticalTable> vertical_;
};

}  // namespace precache
