// SPDX-License-Identifier: Apache-2.0
#include "reader/loader/loader_options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "formats/shard/normalization_check.hpp"
#include "precache/formats/error.hpp"
#include "precache/formats/usable_threads.hpp"
#include "reader/loader/option_checks.hpp"

namespace precache {
namespace {

constexpr std::uint64_t kLargestBatch = UINT32_MAX;
// A larger batch that repeats a few samples is a mistake, and would take all memory.
constexpr std::uint64_t kLargestPaddedBatch = 1 << 20;
constexpr std::uint64_t kMostRepeats = 1024;
constexpr std::uint64_t kLargestWorld = 1 << 24;  // so that positions cannot overflow

void check_choice(LoaderOptions& options, std::uint64_t dataset_samples) {
  if (options.subset && !options.subset->empty()) {
    const std::uint64_t largest = *std::ranges::max_element(*options.subset);
    if (largest >= dataset_samples) {
      throw InvalidArgument(fmt::format("`subset` must be below {}, the number of samples, got {}",
                                        dataset_samples, largest));
    }
  }
  const std::uint64_t positions = position_count(options, dataset_samples);
  Shuffle& shuffle = options.order.shuffle;
  if (options.weights.empty()) {
    if (shuffle == Shuffle::kWeighted) throw InvalidArgument("`shuffle` weighted needs `weights`");
    return;
  }
  if (options.weights.size() != positions) {
    throw InvalidArgument(
        fmt::format("`weights` must have one entry for each of {} samples, got {}", positions,
                    options.weights.size()));
  }
  if (shuffle != Shuffle::kNone && shuffle != Shuffle::kWeighted) {
    throw InvalidArgument(
        fmt::format("`weights` cannot be combined with `shuffle` {}", name(shuffle)));
  }
  shuffle = Shuffle::kWeighted;
}

}  // namespace

LoaderOptions validated(LoaderOptions options, std::uint64_t dataset_samples) {
  check_choice(options, dataset_samples);
  const std::uint64_t samples = position_count(options, dataset_samples);
  check_count("batch_size", options.batch_size, kLargestBatch);
  if (options.last_batch == LastBatch::kPad &&
      options.batch_size > std::max(samples, kLargestPaddedBatch)) {
    throw InvalidArgument(
        fmt::format("`batch_size` must be at most {} to pad a dataset of {} samples, got {}",
                    std::max(samples, kLargestPaddedBatch), samples, options.batch_size));
  }
  check_count("world_size", options.world_size, kLargestWorld);
  if (options.rank >= options.world_size) {
    throw InvalidArgument(fmt::format("`rank` must be below `world_size`, got rank {} of {}",
                                      options.rank, options.world_size),
                          "Ranks count from 0.");
  }
  if (options.repeats != 1) {
    check_count("repeats", options.repeats, kMostRepeats);
    if (options.order.shuffle == Shuffle::kNone) {
      throw InvalidArgument(
          "`repeats` needs `shuffle`, because each epoch reads only some of the samples",
          "Set `shuffle` to block or full.");
    }
  }
  if (options.transform.normalize) check_unit_range(*options.transform.normalize);
  if (options.prefetch == 0) throw InvalidArgument("`prefetch` must be at least 1, got 0");
  if (options.threads == 0) options.threads = usable_threads();
  return options;
}

std::uint64_t position_count(const LoaderOptions& options, std::uint64_t dataset_samples) {
  return options.subset ? options.subset->size() : dataset_samples;
}

std::uint64_t largest_batch(const LoaderOptions& options, std::uint64_t dataset_samples) {
  return options.last_batch == LastBatch::kPad
             ? options.batch_size
             : std::min(options.batch_size, position_count(options, dataset_samples));
}

void check_state(const OrderState& state, std::uint64_t positions, bool has_weights) {
  if (state.samples != positions) {
    throw InvalidArgument(
        fmt::format("the state belongs to a dataset of {} samples, but this one has {}",
                    state.samples, positions));
  }
  if (state.order.shuffle == Shuffle::kWeighted && !has_weights) {
    throw InvalidArgument("the state belongs to a loader with `weights`",
                          "Make this loader with the same weights.");
  }
  if (state.position > state.samples) {
    throw InvalidArgument(fmt::format("the state's 'position' must be at most {}, got {}",
                                      state.samples, state.position));
  }
}

void check_key(const SampleKey& key, std::uint64_t samples, std::uint32_t repeats) {
  if (key.sample >= samples) {
    throw InvalidArgument(fmt::format("`sample` must be below {}, the number of samples, got {}",
                                      samples, key.sample));
  }
  if (key.repeat >= repeats) {
    throw InvalidArgument(fmt::format("`repeat` must be below {}, the number of repeats, got {}",
                                      repeats, key.repeat));
  }
}

}  // namespace precache
