// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "reader/loader/batch_buffer.hpp"
#include "reader/loader/pixel_pass.hpp"
#include "reader/shards/shard_set.hpp"

namespace precache {

/// Fills batches from shards. Immutable, so any number of threads may use one at once, even for
/// different rows of one batch.
class BatchFiller {
 public:
  /// Batches have at most `largest_batch` samples, and with `in_place` (BatchPlacement) only
  /// labels. Throws the InvalidArgument of PixelPass.  REQUIRES: the shards have a spec.
  BatchFiller(std::shared_ptr<const ShardSet> shards, const BatchTransform& transform,
              std::uint64_t largest_batch, bool writable, ShardBytes in_place);

  [[nodiscard]] const TensorSpec& spec() const { return pass_.result(); }
  [[nodiscard]] const PixelPass& pass() const { return pass_; }
  [[nodiscard]] std::size_t batch_bytes() const { return batch_bytes_; }
  /// The number of rows for one turn of a thread, for a slot that was announced.
  [[nodiscard]] std::size_t chunk_rows(const BatchBuffer& slot) const;

  /// Prepares a slot whose samples are set: makes it a view if possible, else gives it memory from
  /// `pool`, and asks the system to read the data that is not in the page cache. Throws IoError,
  /// CorruptData.
  void announce(BatchBuffer& slot, BufferPool& pool) const;
  /// Fills some rows, with the draws of `seed` and the slot's epoch. Returns the number of bytes
  /// read from shards. Throws IoError, CorruptData.
  std::uint64_t fill(BatchBuffer& slot, std::size_t first, std::size_t count,
                     std::uint64_t seed) const;

 private:
  [[nodiscard]] bool make_view(BatchBuffer& slot) const;
  void read_ahead(const BatchBuffer& slot) const;

  std::shared_ptr<const ShardSet> shards_;
  PixelPass pass_;
  std::size_t batch_bytes_;
  bool stream_;
  bool writable_;        // no views
  ShardBytes in_place_;  // the consumer takes the rows from there
};

}  // namespace precache
