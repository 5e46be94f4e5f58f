// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "formats/bytes/host_device.hpp"
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
  CropRule rule;
  std::uint64_t* rows = nullptr;  // results, `count` of each
  AugmentationDraw* choices = nullptr;
};

/// The sample of a batch's row. Positions after the last one wrap around.
PRECACHE_HOST_DEVICE inline std::uint64_t chosen_sample(const ResidentWork& work,
                                                        std::uint64_t row) {
  const std::uint64_t position = (work.first + row) % work.order.samples;
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
    work.choices[row] = draw_crop(work.rule, work.seed, work.epoch, sample);
  }
}

}  // namespace precache::device
