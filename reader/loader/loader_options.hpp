// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "precache/reader/loader.hpp"
#include "reader/loader/augment/operation_random.hpp"

namespace precache {

/// The options with the number of threads that 0 stands for. Throws InvalidArgument if they
/// contradict each other or do not fit a dataset of so many samples.
[[nodiscard]] LoaderOptions validated(LoaderOptions options, std::uint64_t dataset_samples);
/// The number of positions of an epoch: the samples of the subset or the dataset.
[[nodiscard]] std::uint64_t position_count(const LoaderOptions& options,
                                           std::uint64_t dataset_samples);
/// Throws InvalidArgument if a loader with these options, of so many positions, cannot resume from
/// the state.
void check_state(const OrderState& state, std::uint64_t positions, bool has_weights);
/// Throws InvalidArgument for a sample or repeat that a loader does not have.
void check_key(const SampleKey& key, std::uint64_t samples, std::uint32_t repeats);
/// The number of samples of the largest batch.
[[nodiscard]] std::uint64_t largest_batch(const LoaderOptions& options,
                                          std::uint64_t dataset_samples);

}  // namespace precache
