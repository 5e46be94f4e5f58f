// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/shard/column_values.hpp"
#include "precache/formats/named_column.hpp"
#include "precache/reader/batch_transform.hpp"
#include "reader/loader/batch_buffer.hpp"
#include "reader/loader/pixel_pass.hpp"
#include "reader/shards/shard_set.hpp"

namespace precache {

/// Copies the named columns that a loader was asked for into its batches. A mask is cropped and
/// flipped with the draw of its image. Immutable, so any number of threads may use one at once.
class ColumnFiller {
 public:
  /// Throws InvalidArgument if the dataset does not have a column of this name, a name comes twice,
  /// or a mask does not have the height and width of the images and `transform` crops or flips;
  /// Unsupported for a mask with lists of operations.
  ColumnFiller(const ShardSet& shards, const std::vector<std::string>& names,
               const BatchTransform& transform);

  /// True if no column was asked for. The functions below then have nothing to do.
  [[nodiscard]] bool is_empty() const { return columns_.empty(); }
  /// As they are in batches.
  [[nodiscard]] std::span<const NamedColumn> columns() const {
    return specs_ == nullptr ? std::span<const NamedColumn>() : *specs_;
  }
  /// Gives a slot memory for the values of all its samples.
  void announce(BatchBuffer& slot) const;
  /// Fills row `i` of each column with the values of a shard's record. Throws CorruptData.
  void fill(BatchBuffer& slot, std::size_t i, const ColumnValues& values,
            std::span<const std::byte> file, std::uint64_t record, std::uint64_t seed) const;

 private:
  struct Chosen {
    std::size_t number;             // in the dataset
    std::size_t bytes;              // of a row in a batch
    std::optional<PixelPass> pass;  // of a mask that is cropped or flipped
  };

  std::vector<Chosen> columns_;
  NamedColumns specs_;  // null: none
};

}  // namespace precache
