// SPDX-License-Identifier: Apache-2.0
/// Batches for training, filled ahead of their use.
///
/// A Loader reads a Dataset epoch by epoch. Its threads read, crop, flip, normalize and convert the
/// samples of the next batches while the consumer uses the present one. The order of the samples
/// depends on (seed, epoch) and the shuffle alone, so a run can be continued from its state(), with
/// another number of ranks, too.
///
///     precache::LoaderOptions options;
///     options.batch_size = 32;
///     options.order.shuffle = precache::Shuffle::kFull;
///     options.transform.normalize = {{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};
///     precache::Loader loader(precache::Dataset::open("shards"), options);
///     while (const auto batch = loader.next()) {  // none at the end of the epoch
///       const auto images = batch->as<float>();
///       for (std::size_t i = 0; i < batch->size(); ++i) train(images[i], batch->labels()[i]);
///     }
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "precache/formats/dtype.hpp"
#include "precache/formats/tensor_spec.hpp"
#include "precache/reader/batch_transform.hpp"
#include "precache/reader/dataset.hpp"
#include "precache/reader/order.hpp"
#include "precache/reader/typed_rows.hpp"

namespace precache {

class BatchPipeline;
struct BatchBuffer;

struct LoaderOptions {
  std::uint64_t batch_size = 256;  // of this rank
  OrderOptions order{};
  std::uint64_t seed = 0;  // of the order, the crops and the flips
  std::uint64_t rank = 0;  // which slice of each step this process takes
  std::uint64_t world_size = 1;
  LastBatch last_batch = LastBatch::kDrop;
  BatchTransform transform{};
  unsigned threads = 0;  // that fill batches; 0: as many as the process may use
  /// Batches that are filled ahead of the consumer. Memory is bounded by these and those that the
  /// consumer holds.
  std::size_t prefetch = 3;
  /// Copy every batch, for consumers that write to them. Otherwise neighbours without a transform
  /// are views of the shard's pages.
  bool writable = false;
};

/// Tensors and labels of some samples.
///
/// The memory stays as it is until the batch is destroyed, even after the loader is; then it is
/// used again. Views of a temporary batch do not compile. Any thread may use a batch, one at a
/// time.
class Batch {
 public:
  Batch(Batch&&) noexcept;
  Batch& operator=(Batch&&) noexcept;
  ~Batch();

  [[nodiscard]] std::size_t size() const;
  /// What each row is.
  [[nodiscard]] TensorSpec spec() const;
  /// The elements of every row: `as<float>()[i]` are those of sample i. T is std::uint8_t, Float16,
  /// Bfloat16 or float. Throws InvalidArgument if it is not the type of the elements.
  template <TensorElement T>
  [[nodiscard]] TypedRows<const T> as() const& {
    return {spec(), data(), size(), stride_bytes()};
  }
  template <TensorElement T>
  TypedRows<const T> as() const&& = delete;
  /// The same after make_writable().
  template <TensorElement T>
  [[nodiscard]] TypedRows<T> as_writable() & {
    return {spec(), make_writable(), size(), stride_bytes()};
  }
  /// Row i lies at `data() + i * stride_bytes()`, aligned for its elements. Rows follow each other
  /// without a gap unless the batch is a view.
  [[nodiscard]] const std::byte* data() const&;
  const std::byte* data() const&& = delete;
  [[nodiscard]] std::size_t stride_bytes() const;
  /// REQUIRES: i < size().
  [[nodiscard]] std::span<const std::byte> operator[](std::size_t i) const&;
  std::span<const std::byte> operator[](std::size_t i) const&& = delete;
  /// Memory of this batch alone, at the same stride; data() is the same from now on. No other
  /// batch, no other epoch and no file sees what is written to it. A view is mapped again for that,
  /// and pages are copied when they are written to. Throws IoError if the system refuses.
  [[nodiscard]] std::byte* make_writable() &;
  /// -1 where a sample has none.
  [[nodiscard]] std::span<const std::int64_t> labels() const&;
  std::span<const std::int64_t> labels() const&& = delete;
  /// Which samples of the dataset these are.
  [[nodiscard]] std::span<const std::uint64_t> samples() const&;
  std::span<const std::uint64_t> samples() const&& = delete;
  /// Whether the rows are the shard's own pages, not a copy.
  [[nodiscard]] bool is_view() const;
  /// Throws CorruptData if this is a view of a shard that was cut, written to or could not be read
  /// since: what was read of it may be wrong.
  void check() const;

 private:
  friend class BatchPipeline;
  explicit Batch(std::unique_ptr<BatchBuffer> buffer);
  std::unique_ptr<BatchBuffer> buffer_;
};

/// Who waited for whom, since the loader was made.
struct LoaderStats {
  std::uint64_t batches = 0;                    // returned
  std::uint64_t views = 0;                      // of them, without a copy
  std::uint64_t bytes_touched = 0;              // of shards, for batches filled so far
  std::chrono::nanoseconds consumer_waited{0};  // in next(), for a batch
  std::chrono::nanoseconds workers_waited{0};   // each thread, for room to fill
  double batches_ahead = 0;  // mean number that were ready when next() was called

  /// A sentence: "the consumer waits ..." or "the workers wait ...", with what to change.
  [[nodiscard]] std::string bottleneck() const;
};

/// Hands out the batches of one epoch after another, filled ahead by its own threads.
///
/// Batches come in the order of docs/reader.md whatever the number of threads. Use one loader from
/// one thread at a time. In a process that was forked since, every call throws InvalidArgument:
/// make another loader there. Batches and datasets still work there.
class Loader {
 public:
  /// Starts the threads. Throws InvalidArgument for options that make no sense, Unsupported if the
  /// samples are not tensors of one spec.
  explicit Loader(Dataset dataset, const LoaderOptions& options = {});
  Loader(Loader&&) noexcept;
  Loader& operator=(Loader&&) noexcept;
  /// Waits for the threads. Batches that were returned stay valid.
  ~Loader();

  /// The next batch, or none at the end of the epoch; the call after that begins the next epoch.
  /// Throws IoError or CorruptData, naming the shard, where one cannot be read; state() is then
  /// that before the batch, and every call throws the same until resume() or set_epoch().
  [[nodiscard]] std::optional<Batch> next();
  /// Blocks until the next batch is ready or `time` has passed; false if it is not ready. Lets a
  /// caller look for something else meanwhile, such as Ctrl-C.
  [[nodiscard]] bool wait_for(std::chrono::nanoseconds time);

  /// Batches of a whole epoch, and those that are left of this one.
  [[nodiscard]] std::uint64_t batches_per_epoch() const;
  [[nodiscard]] std::uint64_t batches_left() const;
  [[nodiscard]] std::uint64_t epoch() const;
  /// Continues at the beginning of an epoch.
  void set_epoch(std::uint64_t epoch);
  /// Where the run stands: after the batches that next() returned, whatever was filled ahead.
  [[nodiscard]] OrderState state() const;
  /// Continues from a state, with its seed and order. Throws InvalidArgument if it belongs to a
  /// dataset of another size, or makes no sense.
  void resume(const OrderState& state);

  /// What each row of a batch is.
  [[nodiscard]] TensorSpec spec() const;
  [[nodiscard]] LoaderStats stats() const;
  /// Options that work but will not do what was probably meant, each a sentence.
  [[nodiscard]] std::vector<std::string> warnings() const;

 private:
  [[nodiscard]] BatchPipeline& pipeline() const;
  std::unique_ptr<BatchPipeline> pipeline_;
};

}  // namespace precache
