// SPDX-License-Identifier: Apache-2.0
#include "convert/job/plan.hpp"

#include <algorithm>

#include "formats/bytes/checked_math.hpp"

namespace precache {

Plan::Plan(std::uint64_t samples, std::uint64_t shards, std::optional<std::uint64_t> seed)
    : records_(samples), shards_(shards) {
  if (seed) permutation_.emplace(records_, *seed);
}

Plan::Plan(const std::vector<std::uint64_t>& shard_records, std::optional<std::uint64_t> seed)
    : records_(0), shards_(shard_records.size()) {
  for (const std::uint64_t records : shard_records) {
    ends_.push_back(records_ = checked_add(records_, records));
  }
  if (seed) permutation_.emplace(records_, *seed);
}

std::uint64_t Plan::shard_begin(std::uint64_t shard) const {
  if (!ends_.empty()) return shard == 0 ? 0 : ends_[shard - 1];
  const std::uint64_t larger = records_ % shards_;  // this many shards have one record more
  return shard * (records_ / shards_) + std::min(shard, larger);
}

std::uint64_t Plan::sample(std::uint64_t shard, std::uint64_t slot) const {
  const std::uint64_t position = shard_begin(shard) + slot;
  return permutation_ ? (*permutation_)(position) : position;
}

std::uint64_t shards_for_size(std::uint64_t records, std::uint64_t record_bytes,
                              std::uint64_t shard_bytes) {
  const std::uint64_t per_shard = std::max<std::uint64_t>(1, shard_bytes / record_bytes);
  return std::max<std::uint64_t>(1, (records + per_shard - 1) / per_shard);
}

}  // namespace precache
