// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "formats/bytes/host_device.hpp"
#include "precache/reader/batch_transform.hpp"
#include "reader/device/augment_work.hpp"
#include "reader/device/pixel_work.hpp"
#include "reader/loader/crop_draw.hpp"
#include "reader/loader/order_body.hpp"

/// The kernel that chooses the samples of a batch and their draws. Tests also run it on the CPU.
namespace precache::device {

/// One batch to choose; the only argument of the kernel.
struct ResidentWork {
  OrderKeys order;
  WeightSums weights;                     // no sums: the order has no weights
  const std::uint64_t* subset = nullptr;  // the sample of each position; null: its number
  std::uint64_t seed = 0;
  std::uint64_t epoch = 0;
  std::uint64_t first = 0;  // position
  std::uint32_t count = 0;
  std::uint32_t repeats = 1;  // neighbouring positions of each sample
  CropRule rule;
  std::uint64_t samples = 0;             // of the dataset
  const ImageSize* originals = nullptr;  // of each of them; null: unknown
  // Results, `count` of each:
  std::uint64_t* rows = nullptr;
  AugmentationDraw* choices = nullptr;  // null: the operations of a list draw later
  RowKey* keys = nullptr;               // null: they do not
};

/// A position of the order, and the number of its repeat.
struct Place {
  std::uint64_t position;
  std::uint32_t repeat;
};

/// The place of a batch's row. Those after the last one wrap around.
PRECACHE_HOST_DEVICE inline Place place_of(const ResidentWork& work, std::uint64_t row) {
  const std::uint64_t place = (work.first + row) % work.order.samples;
  return {place / work.repeats, static_cast<std::uint32_t>(place % work.repeats)};
}

/// The sample of a batch's row.
PRECACHE_HOST_DEVICE inline std::uint64_t chosen_sample(const ResidentWork& work,
                                                        std::uint64_t row) {
  const std::uint64_t position = place_of(work, row).position;
  const std::uint64_t chosen = work.weights.sums != nullptr
                                   ? weighted_draw(work.weights, work.seed, work.epoch, position)
                                   : sample_at(work.order, position);
  return work.subset != nullptr ? work.subset[chosen] : chosen;
}

/// The rows of a thread: `first`, and every `step`-th from there.
PRECACHE_HOST_DEVICE inline void choose_rows(const ResidentWork& work, std::uint32_t first,
                                             std::uint32_t step) {
  for (std::uint64_t row = first; row < work.count; row += step) {
    const std::uint64_t sample = chosen_sample(work, row);
    work.rows[row] = sample;
    const std::uint32_t repeat = place_of(work, row).repeat;
    if (work.choices != nullptr) {
      // As ViewPass: the first of the repeats draws as if there were no others.
      work.choices[row] =
          draw_crop(work.rule, work.seed + repeat * kGoldenGamma, work.epoch, sample);
    }
    if (work.keys != nullptr) {
      const ImageSize original = work.originals == nullptr ? ImageSize() : work.originals[sample];
      work.keys[row] = {sample, repeat, original.height, original.width};
    }
  }
}

}  // namespace precache::device
