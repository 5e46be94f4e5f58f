// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "formats/bytes/host_device.hpp"
#include "formats/bytes/splitmix.hpp"
#include "formats/shard/permutation_body.hpp"
#include "precache/reader/order.hpp"

/// The arithmetic of orders and draws, which GPUs run too. docs/reader.md specifies it.
namespace precache {

/// Not symmetric, so that (seed 1, epoch 2) and (seed 2, epoch 1) have nothing in common.
PRECACHE_HOST_DEVICE constexpr std::uint64_t combine(std::uint64_t key, std::uint64_t value) {
  return splitmix(splitmix(key + kGoldenGamma) ^ (value + kGoldenGamma));
}

/// All that an EpochOrder is made of.
struct OrderKeys {
  std::uint64_t samples = 0;
  Shuffle shuffle = Shuffle::kNone;
  std::uint64_t block_rows = 1;
  std::uint64_t window_blocks = 1;
  std::uint64_t key = 0;
  Permutation::Keys permutation;  // of blocks or of samples
  // Only the last block may be short. Windows after it begin earlier, so its place matters.
  std::uint64_t short_block_rows = 0;
  std::uint64_t short_block_position = 0;
};

PRECACHE_HOST_DEVICE inline std::uint64_t block_shuffled(const OrderKeys& order,
                                                         std::uint64_t position) {
  const std::uint64_t rows = order.block_rows;
  const std::uint64_t window_rows = rows * order.window_blocks;  // at most about `samples`
  const std::uint64_t missing = rows - order.short_block_rows;
  // The window with the short block lacks `missing` rows, so all later windows begin earlier.
  const std::uint64_t short_window = order.short_block_position / order.window_blocks;
  const std::uint64_t short_window_end = (short_window + 1) * window_rows - missing;
  const std::uint64_t window =
      (position < short_window_end ? position : position + missing) / window_rows;
  const std::uint64_t first = window * window_rows - (window > short_window ? missing : 0);
  const std::uint64_t full_end = first + window_rows - (window == short_window ? missing : 0);
  const std::uint64_t size = (full_end < order.samples ? full_end : order.samples) - first;
  const std::uint64_t place =  // in the window, unmixed
      permutation::value_at(permutation::keys_of(size, combine(order.key, window + 1)),
                            position - first);
  // Rows after the short block are counted as if the block were whole.
  const std::uint64_t short_end =
      (order.short_block_position % order.window_blocks) * rows + order.short_block_rows;
  const std::uint64_t whole =
      window == short_window && place >= short_end ? place + missing : place;
  const std::uint64_t block =
      permutation::value_at(order.permutation, window * order.window_blocks + whole / rows);
  return block * rows + whole % rows;
}

/// The sample at a position, before weights.  REQUIRES: position < order.samples.
PRECACHE_HOST_DEVICE inline std::uint64_t sample_at(const OrderKeys& order,
                                                    std::uint64_t position) {
  if (order.shuffle == Shuffle::kFull) return permutation::value_at(order.permutation, position);
  if (order.shuffle == Shuffle::kBlock) return block_shuffled(order, position);
  return position;
}

/// The sums of some weights: of the first, of the first two, and so on.
struct WeightSums {
  const double* sums = nullptr;
  std::uint64_t count = 0;
  double total = 0;
  double below_total = 0;  // the largest number below it
};

/// Draws in proportion to the weights.
PRECACHE_HOST_DEVICE inline std::uint64_t weighted_draw(const WeightSums& weights,
                                                        std::uint64_t seed, std::uint64_t epoch,
                                                        std::uint64_t position) {
  // 53 bits make a double below 1 exactly, but the product may be rounded up to the whole sum.
  const double share = static_cast<double>(combine(combine(seed, epoch), position) >> 11) * 0x1p-53;
  const double product = share * weights.total;
  const double wanted = product < weights.below_total ? product : weights.below_total;
  std::uint64_t first = 0;  // the first sum above `wanted` is in [first, end)
  std::uint64_t end = weights.count;
  while (first < end) {
    const std::uint64_t middle = first + (end - first) / 2;
    if (weights.sums[middle] > wanted) {
      end = middle;
    } else {
      first = middle + 1;
    }
  }
  return first;
}

/// Random choices that depend on (seed, epoch, sample) alone.
class SampleRandom {
 public:
  PRECACHE_HOST_DEVICE SampleRandom(std::uint64_t seed, std::uint64_t epoch, std::uint64_t sample)
      : state_(combine(combine(seed, epoch), ~sample)) {}
  /// The next of this sample's numbers, uniform in [0, end).  REQUIRES: end > 0.
  [[nodiscard]] PRECACHE_HOST_DEVICE std::uint64_t below(std::uint64_t end) {
    state_ += kGoldenGamma;
    // The high half of a 128-bit product needs no division; its bias is below 2^-32 for end < 2^32.
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(splitmix(state_)) * end) >>
                                      64);
  }

 private:
  std::uint64_t state_;
};

}  // namespace precache
