// SPDX-License-Identifier: Apache-2.0
#include "reader/loader/epoch_order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "formats/bytes/splitmix.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

// Not symmetric, so that (seed 1, epoch 2) and (seed 2, epoch 1) have nothing in common.
constexpr std::uint64_t combine(std::uint64_t key, std::uint64_t value) {
  return splitmix(splitmix(key + kGoldenGamma) ^ (value + kGoldenGamma));
}

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
                       std::uint64_t epoch)
    : samples_(samples),
      options_(options),
      key_(combine(seed, epoch)),
      permutation_(permuted_items(samples, options), key_) {
  if (options.shuffle != Shuffle::kBlock || samples == 0) return;
  // A window never has more blocks than the dataset.
  options_.window_blocks = std::min(options_.window_blocks, permuted_items(samples, options));
  options_.block_rows = std::min(options_.block_rows, samples);
  const std::uint64_t last_block = permuted_items(samples, options) - 1;
  short_block_rows_ = samples - last_block * options_.block_rows;
  short_block_position_ = permutation_.position_of(last_block);
}

std::uint64_t EpochOrder::operator[](std::uint64_t position) const {
  switch (options_.shuffle) {
    case Shuffle::kNone:
    case Shuffle::kWeighted:  // WeightedOrder has those
      return position;
    case Shuffle::kFull:
      return permutation_(position);
    case Shuffle::kBlock:
      break;
  }
  return block_shuffled(position);
}

std::uint64_t EpochOrder::block_shuffled(std::uint64_t position) const {
  const std::uint64_t rows = options_.block_rows;
  const std::uint64_t window_rows = rows * options_.window_blocks;  // at most about `samples`
  const std::uint64_t missing = rows - short_block_rows_;
  // The window with the short block lacks `missing` rows, so all later windows begin earlier.
  const std::uint64_t short_window = short_block_position_ / options_.window_blocks;
  const std::uint64_t short_window_end = (short_window + 1) * window_rows - missing;
  const std::uint64_t window =
      (position < short_window_end ? position : position + missing) / window_rows;
  const std::uint64_t first = window * window_rows - (window > short_window ? missing : 0);
  const std::uint64_t full_end = first + window_rows - (window == short_window ? missing : 0);
  const std::uint64_t size = std::min(full_end, samples_) - first;
  const std::uint64_t place =
      Permutation(size, combine(key_, window + 1))(position - first);  // in the window, unmixed
  // Rows after the short block are counted as if the block were whole.
  const std::uint64_t short_end =
      (short_block_position_ % options_.window_blocks) * rows + short_block_rows_;
  const std::uint64_t whole =
      window == short_window && place >= short_end ? place + missing : place;
  const std::uint64_t block = permutation_(window * options_.window_blocks + whole / rows);
  return block * rows + whole % rows;
}

SampleRandom::SampleRandom(std::uint64_t seed, std::uint64_t epoch, std::uint64_t sample)
    : state_(combine(combine(seed, epoch), ~sample)) {}

std::uint64_t SampleRandom::below(std::uint64_t end) {
  state_ += kGoldenGamma;
  // The high half of a 128-bit product needs no division; its bias is below 2^-32 for end < 2^32.
  return static_cast<std::uint64_t>((static_cast<unsigned __int128>(splitmix(state_)) * end) >> 64);
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

std::uint64_t WeightedOrder::draw(std::uint64_t seed, std::uint64_t epoch,
                                  std::uint64_t position) const {
  // 53 bits make a double below 1 exactly, but the product may be rounded up to the whole sum.
  const double share = static_cast<double>(combine(combine(seed, epoch), position) >> 11) * 0x1p-53;
  const double wanted = std::min(share * sums_.back(), std::nextafter(sums_.back(), 0.0));
  return static_cast<std::uint64_t>(std::ranges::upper_bound(sums_, wanted) - sums_.begin());
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
