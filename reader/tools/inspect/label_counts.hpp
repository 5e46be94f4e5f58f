// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "precache/tools/inspect.hpp"
#include "reader/shards/shard_set.hpp"

namespace precache {

/// Counts samples by label: all that are cheap to read (in a table, or side by side in HDF5), all
/// of a small dataset, or if `all`; else some, well spread. Throws CorruptData and IoError.
[[nodiscard]] ClassFacts count_labels(const ShardSet& shards, bool all, InspectProgress& progress);

}  // namespace precache
