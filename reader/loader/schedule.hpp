// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "precache/reader/loader.hpp"
#include "reader/loader/epoch_order.hpp"

namespace precache {

/// The batches of this rank, from some point of an epoch to its end.
struct Schedule {
  OrderState state;  // at the beginning of `slices`
  RankSlices slices;
  EpochOrder order;
  std::uint64_t step = 0;

  Schedule(const OrderState& from, const LoaderOptions& options)
      : state(from),
        slices{from.samples, from.position,      options.batch_size,
               options.rank, options.world_size, options.last_batch},
        order(from.samples, from.order, from.seed, from.epoch) {}

  /// Whether this rank has a batch at `step`.
  [[nodiscard]] bool has_batch() const {
    return step < slices.steps() && slices.slice(step).count != 0;
  }
  [[nodiscard]] std::uint64_t batches() const {
    const std::uint64_t steps = slices.steps();
    // With LastBatch::kKeep this rank may have no batch at the last step.
    return steps != 0 && slices.slice(steps - 1).count == 0 ? steps - 1 : steps;
  }
  [[nodiscard]] OrderState state_now() const {
    OrderState now = state;
    now.position = slices.position_after(step);
    return now;
  }
};

}  // namespace precache
