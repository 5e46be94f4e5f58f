// SPDX-License-Identifier: Apache-2.0
#include "reader/loader/epoch_order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "precache/formats/error.hpp"
#include "precache/formats/permutation.hpp"

namespace precache {
namespace {

std::uint64_t permuted_items(std::uint64_t samples, const OrderOptions& options) {
  if (options.shuffle != Shuffle::kBlock) return samples;
  if (options.block_rows == 0) throw InvalidArgument("`block_rows` must be at least 1, got 0");
  if (options.window_blocks == 0) {
    throw InvalidArgument("`window_blocks` must be at least 1, got 0");
  }
  return samples / options.block_rows + (samples % options.block_rows != 0 ? 1 : 0);
}

}  // namespace

EpochOrder::EpochOrder(std::uint64_t samples, const OrderOptions& options, std::uint64_t seed,
                       std::uint64_t epoch) {
  const std::uint64_t items = permuted_items(samples, options);
  keys_.samples = samples;
  keys_.shuffle = options.shuffle;
  keys_.key = combine(seed, epoch);
  keys_.permutation = permutation::keys_of(items, keys_.key);
  if (options.shuffle != Shuffle::kBlock || samples == 0) return;
  // A window never has more blocks than the dataset.
  keys_.window_blocks = std::min(options.window_blocks, items);
  keys_.block_rows = std::min(options.block_rows, samples);
  keys_.short_block_rows = samples - (items - 1) * keys_.block_rows;
  keys_.short_block_position = Permutation(items, keys_.key).position_of(items - 1);
}

WeightedOrder::WeightedOrder(const std::vector<double>& weights) {
  sums_.reserve(weights.size());
  double sum = 0;
  for (const double weight : weights) {
    if (!std::isfinite(weight) || weight < 0) {
      throw InvalidArgument(
          fmt::format("`weights` must be finite and not negative, got {}", weight));
    }
    sums_.push_back(sum += weight);
  }
  if (sum > 0 && std::isfinite(sum)) return;
  throw InvalidArgument(
      fmt::format("the sum of `weights` must be finite and above 0, got {}", sum));
}

WeightSums WeightedOrder::weights() const {
  return {sums_.data(), sums_.size(), sums_.back(), std::nextafter(sums_.back(), 0.0)};
}

std::uint64_t RankSlices::steps() const {
  const std::uint64_t left = samples - position;
  const std::uint64_t step = batch_size * world_size;
  return left / step + (last_batch != LastBatch::kDrop && left % step != 0 ? 1 : 0);
}

RankSlices::Slice RankSlices::slice(std::uint64_t step) const {
  const std::uint64_t whole = batch_size * world_size;
  const std::uint64_t first = position + step * whole;
  const std::uint64_t left = samples - std::min(first, samples);
  const bool is_shared = last_batch == LastBatch::kKeep || last_batch == LastBatch::kEven;
  if (left >= whole || !is_shared) return {first + rank * batch_size, batch_size};
  const std::uint64_t share = left / world_size;
  const std::uint64_t rest = left % world_size;
  if (last_batch == LastBatch::kKeep) {
    return {first + rank * share + std::min(rank, rest), share + (rank < rest ? 1 : 0)};
  }
  const std::uint64_t equal = share + (rest != 0 ? 1 : 0);
  return {first + rank * equal, equal};
}

std::uint64_t RankSlices::position_after(std::uint64_t step) const {
  return std::min(position + step * world_size * batch_size, samples);
}

}  // namespace precache
