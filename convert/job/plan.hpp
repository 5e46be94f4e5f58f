// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "precache/formats/permutation.hpp"

namespace precache {

/// Assigns samples to the records of shards: a pure function of its arguments.
class Plan {
 public:
  /// Shards that differ by at most one record. Without a seed the order of the listing is kept.
  /// REQUIRES: 0 < shards <= samples.
  Plan(std::uint64_t samples, std::uint64_t shards, std::optional<std::uint64_t> seed);
  /// Shards of these sizes, in records; some may be empty.
  Plan(const std::vector<std::uint64_t>& shard_records, std::optional<std::uint64_t> seed);

  [[nodiscard]] std::uint64_t records() const { return records_; }
  [[nodiscard]] std::uint64_t shards() const { return shards_; }
  /// The first record of a shard, counted through all shards; `shard == shards()` gives the end.
  [[nodiscard]] std::uint64_t shard_begin(std::uint64_t shard) const;
  [[nodiscard]] std::uint64_t shard_records(std::uint64_t shard) const {
    return shard_begin(shard + 1) - shard_begin(shard);
  }
  /// Whether records come in the order of the listing.
  [[nodiscard]] bool keeps_order() const { return !permutation_; }
  /// The number in the listing of the sample that a record is made of.
  [[nodiscard]] std::uint64_t sample(std::uint64_t shard, std::uint64_t slot) const;

 private:
  std::uint64_t records_;
  std::uint64_t shards_;
  std::vector<std::uint64_t> ends_;  // of shards of given sizes, else empty
  std::optional<Permutation> permutation_;
};

/// The number of shards of about `shard_bytes` that hold `records` records of `record_bytes`.
[[nodiscard]] std::uint64_t shards_for_size(std::uint64_t records, std::uint64_t record_bytes,
                                            std::uint64_t shard_bytes);

}  // namespace precache
