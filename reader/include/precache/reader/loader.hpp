// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "precache/formats/tensor_spec.hpp"
#include "precache/reader/batch_transform.hpp"
#include "precache/reader/dataset.hpp"
#include "precache/reader/order.hpp"

namespace precache {

struct BatchPlacement;

struct LoaderOptions {
  std::uint64_t batch_size = 256;  // of this rank
  OrderOptions order;
  std::uint64_t seed = 0;
  std::uint64_t rank = 0;
  std::uint64_t world_size = 1;
  Tail tail = Tail::kDrop;
  BatchTransform transform;
  unsigned threads = 0;  // that fill batches; 0: what the process may use
  /// Batches that are filled ahead of the consumer. Memory is bounded by these and those that the
  /// consumer holds.
  std::size_t prefetch = 3;
  /// For consumers that write to every batch: no batch is a view, all are copies.
  bool writable = false;
};

/// Tensors and labels of some samples. They stay as they are until the batch is destroyed, even
/// after the loader is; then the memory is used again.
class Batch {
 public:
  struct Buffer;
  Batch(Batch&&) noexcept;
  Batch& operator=(Batch&&) noexcept;
  ~Batch();

  [[nodiscard]] std::size_t size() const;
  /// What each row is.
  [[nodiscard]] const TensorSpec& spec() const;
  /// Row i lies at `data() + i * stride_bytes()`. Rows follow each other without a gap unless the
  /// batch is a view.
  [[nodiscard]] const std::byte* data() const;
  [[nodiscard]] std::size_t stride_bytes() const;
  [[nodiscard]] std::span<const std::byte> operator[](std::size_t i) const;
  /// Memory of the holder's alone, at the same stride; data() is the same from now on. What is
  /// written to it is never seen by another batch, by another epoch or in the file. A view is
  /// mapped anew for that; throws IoError if the system refuses.
  [[nodiscard]] std::byte* make_writable();
  [[nodiscard]] std::span<const std::int64_t> labels() const;
  /// Which samples of the dataset these are.
  [[nodiscard]] std::span<const std::uint64_t> samples() const;
  /// Whether the rows are the shard's own pages, not a copy.
  [[nodiscard]] bool is_view() const;
  /// Throws CorruptData if this is a view of a shard that was cut, written to or could not be read
  /// since: what was read of it may be wrong.
  void check() const;

 private:
  friend class Loader;
  explicit Batch(std::unique_ptr<Buffer> slot);
  std::unique_ptr<Buffer> slot_;
};

/// Who waited for whom, since the loader was made.
struct LoaderStats {
  std::uint64_t batches = 0;                    // returned
  std::uint64_t views = 0;                      // of them, without a copy
  std::uint64_t bytes_touched = 0;              // of shards, for batches filled so far
  std::chrono::nanoseconds consumer_waited{0};  // in next(), for a batch
  std::chrono::nanoseconds workers_waited{0};   // each thread, for room to fill
  double batches_ahead = 0;  // mean number that were ready when next() was called

  /// "the consumer waits: …" or "the workers wait: …", with what to change.
  [[nodiscard]] std::string verdict() const;
};

/// Hands out the batches of one epoch after another, filled ahead by threads of its own.
///
/// Batches come in the order of docs/reader.md whatever the number of threads. Use one loader from
/// one thread at a time. In a process that was forked since, every call throws InvalidArgument:
/// make a loader there. Batches and datasets go on.
class Loader {
 public:
  /// Throws InvalidArgument for options that make no sense, Unsupported if the samples are not
  /// tensors of one spec.
  explicit Loader(Dataset dataset, const LoaderOptions& options = {});
  Loader(Loader&&) noexcept;
  Loader& operator=(Loader&&) noexcept;
  ~Loader();

  /// The next batch, or none at the end of the epoch; the call after that begins the next epoch.
  /// Throws IoError or CorruptData, naming the shard, where one cannot be read; state() is then
  /// that before the batch, and every call throws the same until resume() or set_epoch().
  [[nodiscard]] std::optional<Batch> next();
  /// Waits until next() has no need to, but no longer than this; false if it still would. For those
  /// who have to look after something else meanwhile.
  [[nodiscard]] bool wait_for(std::chrono::nanoseconds time);

  /// Batches of a whole epoch, and those that are left of this one.
  [[nodiscard]] std::uint64_t batches_per_epoch() const;
  [[nodiscard]] std::uint64_t batches_left() const;
  [[nodiscard]] std::uint64_t epoch() const;
  /// Goes to the beginning of an epoch.
  void set_epoch(std::uint64_t epoch);
  /// Where the run stands: behind the batches that next() returned, whatever was filled ahead.
  [[nodiscard]] OrderState state() const;
  /// Goes on from a state, with its seed and order. Throws InvalidArgument if it is of a dataset of
  /// another size, or makes no sense.
  void resume(const OrderState& state);

  /// What each row of a batch is.
  [[nodiscard]] const TensorSpec& spec() const;
  [[nodiscard]] LoaderStats stats() const;
  /// Options that work but will not do what was probably meant, each a sentence.
  [[nodiscard]] const std::vector<std::string>& warnings() const;

 private:
  friend class DeviceLoader;
  class Impl;
  Loader(Dataset dataset, const LoaderOptions& options, const BatchPlacement& placement);
  /// Whether next() would not wait.
  [[nodiscard]] bool is_next_ready() const;
  /// Throws InvalidArgument in a process that was forked since.
  [[nodiscard]] Impl& impl() const;
  std::unique_ptr<Impl> impl_;
};

}  // namespace precache
