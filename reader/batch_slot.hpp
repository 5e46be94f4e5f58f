// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "precache/reader/loader.hpp"
#include "reader/mapped_shard.hpp"

namespace precache {

class SlotPool;

/// Memory that is aligned for vectors and asks for huge pages.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(std::size_t size);
  [[nodiscard]] std::byte* data() const { return bytes_.get(); }

 private:
  struct Free {
    void operator()(std::byte* bytes) const;
  };
  std::unique_ptr<std::byte[], Free> bytes_;
};

/// One batch, from its order to its release: what it holds, and how far it is.
///
/// The fields of progress belong to the pipeline's lock; the others to whoever fills the batch,
/// then to whoever holds it.
struct Batch::Slot {
  TensorSpec spec;
  std::vector<std::uint64_t> samples;
  std::vector<std::int64_t> labels;
  const std::byte* data = nullptr;
  std::size_t stride_bytes = 0;
  AlignedBuffer buffer;
  std::shared_ptr<const MappedShard> view;  // instead of the buffer: rows where they lie
  std::optional<PrivateRange> own;          // of a view that may be written to

  std::uint64_t epoch = 0;
  bool ends_epoch = false;  // no batch: the epoch is over
  bool is_announced = false;
  std::size_t rows_claimed = 0;
  std::size_t rows_done = 0;
  std::exception_ptr error;

  std::shared_ptr<SlotPool> home;  // while a Batch has it

  [[nodiscard]] std::size_t bytes() const {
    return samples.empty() ? 0 : (samples.size() - 1) * stride_bytes + spec.size_bytes();
  }
  /// Throws IoError.
  std::byte* make_writable();
  [[nodiscard]] bool is_ready() const {
    return ends_epoch || (is_announced && (error || rows_done == samples.size()));
  }
};

/// Slots and buffers that nobody uses, so that the next batch allocates nothing. Any thread may
/// give them back.
class SlotPool {
 public:
  /// Keeps up to `capacity` of each.
  SlotPool(std::size_t capacity, std::size_t buffer_bytes);
  /// The slot that is unused for the longest time, or a new one. It still has the mapping that it
  /// had: to unmap it is not the consumer's work.
  [[nodiscard]] std::unique_ptr<Batch::Slot> take();
  /// An unused buffer, or a new one. Views need none, so there may be fewer than slots.
  [[nodiscard]] AlignedBuffer take_buffer();
  /// Takes the slot and its buffer; frees them if there are enough.
  void give_back(std::unique_ptr<Batch::Slot> slot);

 private:
  std::size_t capacity_;
  std::size_t buffer_bytes_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Batch::Slot>> free_;
  std::vector<AlignedBuffer> free_buffers_;
};

}  // namespace precache
