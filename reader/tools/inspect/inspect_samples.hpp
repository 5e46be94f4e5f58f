// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "precache/tools/inspect.hpp"
#include "reader/shards/shard_set.hpp"

namespace precache {

/// Fills in what samples tell: how they are got at, first keys, labels, values or kinds of files.
/// REQUIRES: `facts` counts the files. Throws CorruptData and IoError; what was found stays.
void describe_samples(const ShardSet& set, const InspectOptions& options, InspectProgress& progress,
                      Inspection& facts);

}  // namespace precache
