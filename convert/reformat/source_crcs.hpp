// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "convert/reformat/tensor_source.hpp"

namespace precache {

/// A record of a shard of ours as its manifest places it, with the bytes around the tensor.
struct RecordExtent {
  std::uint64_t begin = 0;
  std::uint64_t head_bytes = 0;  // before the tensor
  std::uint64_t tail_bytes = 0;  // behind it
};

/// Compares what was read of shards with the CRCs of their manifest, on the way: the CRC of a shard
/// is combined from those of its records, whatever order they were read in.
///
/// Any number of threads may use one at once.
class SourceCrcs {
 public:
  /// Borrows `split`. Throws CorruptData if the records of a manifest do not lie one behind
  /// another.
  explicit SourceCrcs(const SourceSplit& split);

  /// None where there is no manifest to compare with.
  [[nodiscard]] std::optional<RecordExtent> extent(const ShardSet::Location& place) const;
  /// Takes note of a record's CRC. With the last of a shard, compares; throws CorruptData.
  void note(const ShardSet::Location& place, std::uint32_t crc);
  /// Reads and compares the shards of which records are missing: some were converted by an earlier
  /// run. Throws CorruptData. Ends early when `stop` is set.
  void check_rest(const std::atomic<bool>& stop);
  /// As above, but only shards without records, which nothing else looks at.
  void check_empty();

 private:
  struct Shard {
    RecordExtent first;
    std::uint64_t stride = 0;
    std::vector<std::uint32_t> crcs;  // by record
    std::atomic<std::uint64_t> missing{0};
  };

  void compare(std::size_t shard) const;
  /// CRC of a part of the file.
  [[nodiscard]] std::uint32_t crc_of(std::size_t shard, std::uint64_t begin,
                                     std::uint64_t end) const;
  void expect(std::size_t shard, std::uint32_t crc) const;

  const SourceSplit& split_;
  std::vector<Shard> shards_;  // empty where there is no manifest
};

}  // namespace precache
