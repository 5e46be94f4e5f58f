// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "formats/bytes/host_device.hpp"
#include "reader/loader/augment/operation_random.hpp"

namespace precache::augment {

/// Whether RandomHorizontalFlip mirrors a sample. With `alternate`, one half of the samples is
/// mirrored in even epochs and the other in odd ones.
PRECACHE_HOST_DEVICE inline bool is_flipped(double p, bool alternate, const SampleKey& key,
                                            const OperationKey& operation) {
  if (!alternate) return OperationRandom(key, operation).chance(p);
  SampleKey every_epoch = key;
  every_epoch.epoch = ~std::uint64_t{0};
  every_epoch.repeat = 0;
  const std::uint64_t first = OperationRandom(every_epoch, operation).below(2);
  return (first ^ ((key.epoch + key.repeat) & 1)) == 1;
}

}  // namespace precache::augment
