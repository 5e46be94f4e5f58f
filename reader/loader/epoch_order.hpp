// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "precache/formats/permutation.hpp"
#include "precache/reader/order.hpp"

namespace precache {

/// The order of one epoch: which sample stands at which position.
///
/// A pure function of (samples, options, seed, epoch) that docs/reader.md specifies; it holds no
/// table. Immutable, so any number of threads may use one at once.
class EpochOrder {
 public:
  /// Throws InvalidArgument if block_rows or window_blocks is 0 and the shuffle is by blocks.
  EpochOrder(std::uint64_t samples, const OrderOptions& options, std::uint64_t seed,
             std::uint64_t epoch);

  [[nodiscard]] std::uint64_t samples() const { return samples_; }
  /// REQUIRES: position < samples.
  [[nodiscard]] std::uint64_t operator[](std::uint64_t position) const;

 private:
  [[nodiscard]] std::uint64_t block_shuffled(std::uint64_t position) const;

  std::uint64_t samples_;
  OrderOptions options_;
  std::uint64_t key_;
  Permutation permutation_;  // of blocks or of samples
  // Only the last block may be short. Where the permutation puts it decides where windows begin.
  std::uint64_t short_block_rows_ = 0;
  std::uint64_t short_block_position_ = 0;
};

/// Random choices that depend on (seed, epoch, sample) alone.
class SampleRandom {
 public:
  SampleRandom(std::uint64_t seed, std::uint64_t epoch, std::uint64_t sample);
  /// The next of this sample's numbers, uniform in [0, end).  REQUIRES: end > 0.
  [[nodiscard]] std::uint64_t below(std::uint64_t end);

 private:
  std::uint64_t state_;
};

/// Which positions a rank takes at which step, from `position` to the end of the epoch.
///
/// Step t of all ranks together is [position + t*W*b, position + (t+1)*W*b); rank r has the r-th
/// slice of b.
struct RankSlices {
  std::uint64_t samples = 0;
  std::uint64_t position = 0;  // where the epoch begins or continues
  std::uint64_t batch_size = 1;
  std::uint64_t rank = 0;
  std::uint64_t world_size = 1;
  LastBatch last_batch = LastBatch::kDrop;

  /// Steps that are left; the same on every rank.
  [[nodiscard]] std::uint64_t steps() const;
  /// First position and count of a step. Positions at or above `samples` (with kPad) mean the
  /// epoch's first ones again, modulo `samples`; the count is below batch_size only with kKeep.
  struct Slice {
    std::uint64_t first = 0;
    std::uint64_t count = 0;
  };
  [[nodiscard]] Slice slice(std::uint64_t step) const;
  /// The state's position once `step` steps were returned.
  [[nodiscard]] std::uint64_t position_after(std::uint64_t step) const;
};

}  // namespace precache
