// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/shard/column_values.hpp"
#include "precache/formats/named_column.hpp"
#include "precache/reader/batch_transform.hpp"
#include "reader/loader/batch_buffer.hpp"
#include "reader/shards/shard_set.hpp"

namespace precache {

/// The columns of these names as they are stored; null if there are none. Throws InvalidArgument if
/// the dataset does not have a column of this name, or a name comes twice.
[[nodiscard]] NamedColumns columns_of(const ShardSet& shards,
                                      const std::vector<std::string>& names);

/// Copies the named columns that a loader was asked for into its batches. A mask changes as the
/// passes of the batch say. Immutable, so any number of threads may use one at once.
class ColumnFiller {
 public:
  /// Throws the exceptions of columns_of().
  ColumnFiller(const ShardSet& shards, const std::vector<std::string>& names);

  /// True if no column was asked for. The functions below then have nothing to do.
  [[nodiscard]] bool is_empty() const { return numbers_.empty(); }
  /// Gives a slot memory for the values of all its samples.
  void announce(BatchBuffer& slot) const;
  /// Fills row `i` of each column with the values of a shard's record, as ViewPass::run() does the
  /// image. Throws CorruptData.
  void fill(BatchBuffer& slot, std::size_t i, const ColumnValues& values,
            std::span<const std::byte> file, std::uint64_t record, std::uint64_t seed,
            const std::optional<ImageSize>& original) const;

 private:
  std::vector<std::size_t> numbers_;  // in the dataset
};

}  // namespace precache
