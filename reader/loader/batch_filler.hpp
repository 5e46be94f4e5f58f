// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "reader/loader/augment/view_passes.hpp"
#include "reader/loader/batch_buffer.hpp"
#include "reader/loader/column_filler.hpp"
#include "reader/shards/shard_set.hpp"

namespace precache {

/// Fills batches from shards. Immutable, so any number of threads may use one at once, even for
/// different rows of one batch.
class BatchFiller {
 public:
  /// Batches have at most `batch_bytes` bytes of tensors, and with `in_place` (BatchPlacement) only
  /// labels. Throws the exceptions of ColumnFiller.
  /// REQUIRES: the shards have a spec.
  BatchFiller(std::shared_ptr<const ShardSet> shards, const LoaderOptions& options,
              std::size_t batch_bytes, ShardBytes in_place);

  /// The size of the picture that a sample was made of, by the column `size`; none if the dataset
  /// does not have it. Throws IoError, CorruptData.
  [[nodiscard]] std::optional<ImageSize> original_size(std::uint64_t sample) const;
  [[nodiscard]] std::size_t batch_bytes() const { return batch_bytes_; }
  /// The number of rows for one turn of a thread, for a batch that was announced.
  [[nodiscard]] std::size_t chunk_rows(const BatchBuffer& batch) const;

  /// Prepares a batch whose samples and passes are set: makes it a view if possible, else gives it
  /// memory from `pool`, and asks the system to read the data that is not in the page cache. Throws
  /// IoError, CorruptData.
  void announce(BatchBuffer& batch, BufferPool& pool) const;
  /// Fills some rows, with the draws of `seed` and the batch's epoch. Returns the number of bytes
  /// read from shards. Throws IoError, CorruptData.
  std::uint64_t fill(BatchBuffer& batch, std::size_t first, std::size_t count,
                     std::uint64_t seed) const;

 private:
  [[nodiscard]] bool make_view(BatchBuffer& batch) const;
  /// Makes all tensors of a row from the stored one.
  [[nodiscard]] std::optional<ImageSize> original_size(const ColumnValues& values,
                                                       std::span<const std::byte> file,
                                                       std::uint64_t record) const;
  void fill_row(BatchBuffer& batch, std::size_t row, std::span<const std::byte> tensor,
                const std::optional<ImageSize>& original, std::uint64_t seed) const;
  void read_ahead(const BatchBuffer& batch) const;

  std::shared_ptr<const ShardSet> shards_;
  ColumnFiller columns_;
  std::shared_ptr<const ViewPasses> passes_;
  std::optional<std::size_t> size_column_;
  std::size_t batch_bytes_;
  bool stream_;
  bool writable_;        // no views
  ShardBytes in_place_;  // the consumer takes the rows from there
};

}  // namespace precache
