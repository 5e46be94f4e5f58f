// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "precache/tools/inspect.hpp"
#include "reader/shards/shard_set.hpp"

namespace precache {

/// Adds the facts about samples: access, first keys, labels, values or kinds of files.
/// REQUIRES: `facts` has the number of files. Throws CorruptData and IoError; `facts` keeps what
/// was found before.
void describe_samples(const ShardSet& set, const InspectOptions& options, InspectProgress& progress,
                      Inspection& facts);

}  // namespace precache
