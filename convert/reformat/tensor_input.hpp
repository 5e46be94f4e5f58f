// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "convert/job/shard_run.hpp"
#include "convert/reformat/tensor_conversion.hpp"
#include "convert/reformat/tensor_source.hpp"

namespace precache {

/// A record of a precache shard as its manifest places it, with the bytes around the tensor.
struct RecordExtent {
  std::uint64_t begin = 0;
  std::uint64_t head_bytes = 0;  // before the tensor
  std::uint64_t tail_bytes = 0;  // after it
};

/// Compares shards with the CRCs of their manifest while they are read: the CRC of a shard is
/// combined from those of its records, which may be read in any order.
///
/// Any number of threads may use one at once.
class SourceCrcs {
 public:
  /// Borrows `split`. Throws CorruptData if a manifest does not place its records one after
  /// another.
  explicit SourceCrcs(const SourceSplit& split);

  /// None if there is no manifest to compare with.
  [[nodiscard]] std::optional<RecordExtent> extent(const ShardSet::Location& place) const;
  /// Notes a record's CRC. After the last one of a shard, compares; throws CorruptData.
  void note(const ShardSet::Location& place, std::uint32_t crc);
  /// Reads and compares the shards of which not all records were noted, because an earlier run has
  /// converted some. Throws CorruptData. Ends early when `stop` is set.
  void check_rest(const std::atomic<bool>& stop);
  /// The same for shards without records, which no conversion reads.
  void check_empty();

 private:
  struct CheckedShard {
    RecordExtent first;
    std::uint64_t stride = 0;
    std::vector<std::uint32_t> crcs;  // by record
    std::atomic<std::uint64_t> missing{0};
  };

  void compare(std::size_t shard) const;
  /// CRC of a part of the file.
  [[nodiscard]] std::uint32_t crc(std::size_t shard, std::uint64_t begin, std::uint64_t end) const;
  void expect(std::size_t shard, std::uint32_t crc) const;

  const SourceSplit& split_;
  std::vector<CheckedShard> shards_;  // empty if there is no manifest
};

/// Reads the tensors of a split's shards and converts them. Borrows its arguments. It never rejects
/// a tensor: it throws CorruptData if a shard is damaged.
[[nodiscard]] TensorMaker tensor_maker(const SourceSplit& split, const TensorConversion& conversion,
                                       SourceCrcs& check);

}  // namespace precache
