// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "precache/reader/order.hpp"
#include "reader/loader/order_body.hpp"

namespace precache {

/// The order of one epoch: which sample is at which position.
///
/// A pure function of (samples, options, seed, epoch), which docs/reader.md specifies. It needs no
/// table. Immutable, so any number of threads may use one at once.
class EpochOrder {
 public:
  /// Throws InvalidArgument if the shuffle is kBlock and block_rows or window_blocks is 0.
  EpochOrder(std::uint64_t samples, const OrderOptions& options, std::uint64_t seed,
             std::uint64_t epoch);

  [[nodiscard]] std::uint64_t samples() const { return keys_.samples; }
  /// REQUIRES: position < samples.
  [[nodiscard]] std::uint64_t operator[](std::uint64_t position) const {
    return sample_at(keys_, position);
  }

  [[nodiscard]] const OrderKeys& keys() const { return keys_; }

 private:
  OrderKeys keys_;
};

/// Draws samples in proportion to their weights, with replacement.
///
/// A pure function of (weights, seed, epoch, position) that docs/reader.md specifies. Immutable, so
/// any number of threads may use it at once.
class WeightedOrder {
 public:
  /// Throws InvalidArgument unless all weights are finite, none is negative and their sum is finite
  /// and above 0.
  explicit WeightedOrder(const std::vector<double>& weights);
  [[nodiscard]] std::uint64_t draw(std::uint64_t seed, std::uint64_t epoch,
                                   std::uint64_t position) const {
    return weighted_draw(weights(), seed, epoch, position);
  }
  /// Points to the memory of this object.
  [[nodiscard]] WeightSums weights() const;

 private:
  std::vector<double> sums_;  // of the weights up to each sample
};

/// The positions that a rank takes at each step, from `position` to the end of the epoch.
///
/// Step t of all W ranks together is [position + t*W*b, position + (t+1)*W*b) for a batch size of
/// b; rank r takes the r-th slice of b positions. With kKeep and kEven, the ranks share the
/// positions of an incomplete last step, again in the order of the ranks.
struct RankSlices {
  std::uint64_t samples = 0;
  std::uint64_t position = 0;  // where the epoch starts or resumes
  std::uint64_t batch_size = 1;
  std::uint64_t rank = 0;
  std::uint64_t world_size = 1;
  LastBatch last_batch = LastBatch::kDrop;

  /// The steps that are left, the same on every rank.
  [[nodiscard]] std::uint64_t steps() const;
  /// First position and count of a step. With kPad and kEven, positions at or above `samples` wrap
  /// around to the first ones. The count is below batch_size only with kKeep and kEven, at the last
  /// step.
  struct Slice {
    std::uint64_t first = 0;
    std::uint64_t count = 0;
  };
  [[nodiscard]] Slice slice(std::uint64_t step) const;
  /// The position of the state once `step` steps were returned.
  [[nodiscard]] std::uint64_t position_after(std::uint64_t step) const;
};

}  // namespace precache
