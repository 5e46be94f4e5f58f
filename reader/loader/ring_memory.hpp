// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "precache/reader/loader.hpp"
#include "reader/loader/augment/epoch_passes.hpp"

namespace precache {

/// The bytes of the largest batch, of `rows` samples. Throws InvalidArgument, which names the
/// operation that makes such images, if the batches of the ring, or the images between operations,
/// do not fit into the memory of this machine.
[[nodiscard]] std::size_t ring_batch_bytes(const EpochPasses& passes, const LoaderOptions& options,
                                           std::uint64_t rows);

}  // namespace precache
