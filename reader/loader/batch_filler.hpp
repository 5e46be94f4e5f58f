// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "reader/loader/batch_buffer.hpp"
#include "reader/loader/pixel_pass.hpp"
#include "reader/shards/shard_set.hpp"

namespace precache {

/// Fills batches from shards. Immutable, so any number of threads may use one at once, also for
/// different rows of one batch.
class BatchFiller {
 public:
  /// Batches have `largest_batch` samples at most; with `in_place` (BatchPlacement) only labels.
  /// Throws InvalidArgument as PixelPass does. REQUIRES: the shards have a spec.
  BatchFiller(std::shared_ptr<const ShardSet> shards, const BatchTransform& transform,
              std::uint64_t largest_batch, bool writable, ShardBytes in_place);

  [[nodiscard]] const TensorSpec& spec() const { return pass_.result(); }
  [[nodiscard]] const PixelPass& pass() const { return pass_; }
  [[nodiscard]] std::size_t batch_bytes() const { return batch_bytes_; }
  /// Rows that are worth a thread's turn, of a slot that was announced.
  [[nodiscard]] std::size_t chunk_rows(const BatchBuffer& slot) const;

  /// Releases what the slot had. Decides whether a batch whose samples are known can be a view,
  /// gives it memory of `pool` if not, and asks the system for what is not in the page cache.
  /// Throws IoError, CorruptData.
  void announce(BatchBuffer& slot, BufferPool& pool) const;
  /// Fills some rows, with what `seed` and the slot's epoch draw for them; returns how many bytes
  /// of shards that took. Throws IoError, CorruptData.
  std::uint64_t fill(BatchBuffer& slot, std::size_t first, std::size_t count,
                     std::uint64_t seed) const;

 private:
  [[nodiscard]] bool make_view(BatchBuffer& slot) const;
  void read_ahead(const BatchBuffer& slot) const;
  static void touch(const BatchBuffer& slot, std::size_t first, std::size_t count);

  std::shared_ptr<const ShardSet> shards_;
  PixelPass pass_;
  std::size_t batch_bytes_;
  bool stream_;
  bool writable_;        // no views
  ShardBytes in_place_;  // rows are left to whoever takes the batch
};

}  // namespace precache
