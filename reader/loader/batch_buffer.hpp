// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "formats/os/fork.hpp"
#include "precache/formats/named_column.hpp"
#include "precache/reader/loader.hpp"
#include "reader/shards/mapped_shard.hpp"

namespace precache {

class BufferPool;
class ViewPasses;

/// Memory that is aligned for vector instructions.
class AlignedBuffer {
 public:
  using Free = std::function<void(std::byte*)>;
  AlignedBuffer() = default;
  /// Asks for huge pages if it would fill at least one.
  explicit AlignedBuffer(std::size_t size);
  /// Memory from elsewhere, and the function that frees it.
  AlignedBuffer(std::byte* bytes, Free free) : bytes_(bytes, std::move(free)) {}
  [[nodiscard]] std::byte* data() const { return bytes_.get(); }

 private:
  std::unique_ptr<std::byte[], Free> bytes_;
};

/// Returns the bytes of a whole shard, by its number.
using ShardBytes = std::function<std::span<const std::byte>(std::size_t shard)>;

/// Where a loader that copies batches to a device wants them.
struct BatchPlacement {
  /// Called by any thread of the loader, for one buffer for each batch that is prefetched or held
  /// by the consumer.
  std::function<AlignedBuffer()> take_buffer;
  /// Set if the consumer has the shards in memory and takes the tensors from there; the batches
  /// then only have labels. These are read there too, so that the files are not cached twice.
  /// Called by any thread of the loader.
  ShardBytes in_place;
};

/// The memory and the progress of one batch, from its order to its release.
///
/// The lock of the pipeline guards the progress. The other fields belong to the threads that fill
/// the batch, then to the Batch that holds it.
struct BatchBuffer {
  TensorSpec spec;  // of view 0, and so for data and stride
  std::shared_ptr<const ViewPasses> passes;
  std::vector<std::uint64_t> samples;
  std::vector<std::uint32_t> repeats;  // of each sample
  std::vector<std::int64_t> labels;
  std::vector<ImageSize> originals;                   // of each sample; 0x0: unknown
  NamedColumns columns;                               // null: none
  std::vector<std::vector<std::byte>> column_values;  // of each, row after row
  const std::byte* data = nullptr;
  std::size_t stride_bytes = 0;
  AlignedBuffer buffer;
  std::shared_ptr<const MappedShard> view;  // instead of the buffer: rows in the shard
  std::optional<PrivateRange> own;          // of a view that was made writable

  std::uint64_t epoch = 0;
  bool ends_epoch = false;  // not a batch, but the end of the epoch
  bool is_announced = false;
  std::size_t rows_claimed = 0;
  std::size_t rows_done = 0;
  std::exception_ptr error;

  std::shared_ptr<BufferPool> home;  // while a Batch holds this

  [[nodiscard]] std::size_t bytes() const {
    return samples.empty() ? 0 : (samples.size() - 1) * stride_bytes + spec.size_bytes();
  }
  /// Throws IoError.
  std::byte* make_writable();
  [[nodiscard]] bool is_ready() const {
    return ends_epoch || (is_announced && (error || rows_done == samples.size()));
  }
};

/// Unused batches and their memory, so that the next batch allocates nothing. Any thread may return
/// them.
class BufferPool {
 public:
  /// Keeps up to `capacity` of each.
  BufferPool(std::size_t capacity, std::function<AlignedBuffer()> make_buffer);
  /// The batch that has been unused for the longest time, or a new one. It still has its mapping,
  /// so that the consumer does not have to unmap it.
  [[nodiscard]] std::unique_ptr<BatchBuffer> take();
  /// Unused memory, or new one. Views need none.
  [[nodiscard]] AlignedBuffer take_buffer();
  /// Keeps the batch and its memory, or frees them if there are enough.
  void give_back(std::unique_ptr<BatchBuffer> batch);

 private:
  std::size_t capacity_;
  std::function<AlignedBuffer()> make_buffer_;
  ForkSafeMutex mutex_;
  std::vector<std::unique_ptr<BatchBuffer>> free_;
  std::vector<AlignedBuffer> free_buffers_;
};

}  // namespace precache
