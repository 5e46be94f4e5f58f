// SPDX-License-Identifier: Apache-2.0
/// Batches for training, filled ahead of their use.
///
/// A Loader reads a Dataset epoch by epoch. Its threads read, crop, flip, normalize and convert the
/// samples of the next batches while the consumer uses the current one. The order of the samples
/// depends only on the seed, the epoch and the shuffle, so a run can be resumed from its state(),
/// even with another number of ranks.
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
#include <string_view>
#include <vector>

#include "precache/formats/dtype.hpp"
#include "precache/formats/tensor_spec.hpp"
#include "precache/reader/batch_transform.hpp"
#include "precache/reader/batch_view.hpp"
#include "precache/reader/column_rows.hpp"
#include "precache/reader/dataset.hpp"
#include "precache/reader/order.hpp"
#include "precache/reader/typed_rows.hpp"

namespace precache {

class BatchPipeline;
class LoaderCore;
struct BatchBuffer;

/// How a Loader makes batches.
struct LoaderOptions {
  std::uint64_t batch_size = 256;  // of this rank
  OrderOptions order{};
  std::uint64_t seed = 0;  // of the order, the crops and the flips
  std::uint64_t rank = 0;  // the slice of each step that this process takes
  std::uint64_t world_size = 1;
  LastBatch last_batch = LastBatch::kDrop;
  /// Read only these samples: an epoch has as many positions, and the order is that of the
  /// positions. Crops and flips stay those of the samples.
  std::optional<std::vector<std::uint64_t>> subset{};
  /// If not empty, Shuffle::kWeighted: one weight for each position of the subset or the dataset.
  std::vector<double> weights{};
  BatchTransform transform{};
  /// Repeated augmentation: each sample takes this many neighbouring positions of the order, with
  /// other draws at each. An epoch keeps its length, so it has only this part of the samples; other
  /// ones in each epoch. More than 1 needs a shuffle.
  std::uint32_t repeats = 1;
  /// The named columns that batches have next to images and labels. A mask moves with its image, by
  /// the same draws: crops, flips, resizes by nearest neighbour and so on. Its values never change.
  std::vector<std::string> columns{};
  unsigned threads = 0;  // 0: all that the process may use
  /// The number of batches that are filled ahead. Memory is bounded by these and those that the
  /// consumer holds.
  std::size_t prefetch = 3;
  /// Copy every batch, for consumers that write to them. Otherwise, neighbours without a transform
  /// are a view of the shard.
  bool writable = false;
};

/// Tensors and labels of some samples.
///
/// The batch keeps its memory until it is destroyed, even after the loader; then the loader uses
/// the memory again. Views of a temporary batch do not compile. Use a batch from one thread at a
/// time.
class Batch {
 public:
  Batch(Batch&&) noexcept;
  Batch& operator=(Batch&&) noexcept;
  ~Batch();

  /// The number of samples; that of the last batch of an epoch may be smaller than batch_size.
  [[nodiscard]] std::size_t size() const;
  /// The type and shape of each row.
  [[nodiscard]] TensorSpec spec() const;
  /// The elements of every row: `as<float>()[i]` has those of sample i. T is std::uint8_t, Float16,
  /// Bfloat16 or float. Throws InvalidArgument if the elements have another type.
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
  /// Row i is at `data() + i * stride_bytes()`, aligned for its elements. Rows follow each other
  /// without a gap unless the batch is a view.
  [[nodiscard]] const std::byte* data() const&;
  const std::byte* data() const&& = delete;
  /// From the beginning of a row to that of the next.
  [[nodiscard]] std::size_t stride_bytes() const;
  /// REQUIRES: i < size().
  [[nodiscard]] std::span<const std::byte> operator[](std::size_t i) const&;
  std::span<const std::byte> operator[](std::size_t i) const&& = delete;
  /// The number of tensors of each sample: BatchTransform::views, or one.
  [[nodiscard]] std::size_t views() const;
  /// The tensors of one view. The functions above return those of view 0.  REQUIRES: i < views().
  [[nodiscard]] BatchView view(std::size_t i) const&;
  BatchView view(std::size_t i) const&& = delete;
  /// Returns memory that only this batch uses, with the same stride; data() is the same from now
  /// on. Writes to it change no other batch, no other epoch and no file. A view is mapped again for
  /// that, and its pages are copied when they are written to. Throws IoError.
  [[nodiscard]] std::byte* make_writable() &;
  /// -1 for a sample without a label.
  [[nodiscard]] std::span<const std::int64_t> labels() const&;
  std::span<const std::int64_t> labels() const&& = delete;
  /// Those of LoaderOptions::columns. A mask has the height and width of its image.
  [[nodiscard]] std::span<const NamedColumn> columns() const&;
  std::span<const NamedColumn> columns() const&& = delete;
  /// The values of a column: `column<float>("age")[i]` has those of sample i. T is std::uint8_t,
  /// std::int32_t, std::int64_t or float. Throws InvalidArgument if the batch does not have the
  /// column, or its values have another type.
  template <ColumnElement T>
  [[nodiscard]] ColumnRows<T> column(std::string_view name) const& {
    const std::size_t number = column_number(name);
    return {columns()[number], column_bytes(number)};
  }
  template <ColumnElement T>
  ColumnRows<T> column(std::string_view name) const&& = delete;
  /// The same as bytes, row after row.  REQUIRES: i < columns().size().
  [[nodiscard]] std::span<const std::byte> column_bytes(std::size_t i) const&;
  std::span<const std::byte> column_bytes(std::size_t i) const&& = delete;
  /// The indices of the samples in the dataset.
  [[nodiscard]] std::span<const std::uint64_t> samples() const&;
  std::span<const std::uint64_t> samples() const&& = delete;
  /// Which of the LoaderOptions::repeats of its sample each row is.
  [[nodiscard]] std::span<const std::uint32_t> repeats() const&;
  std::span<const std::uint32_t> repeats() const&& = delete;
  /// True if the rows are pages of the shard, not a copy.
  [[nodiscard]] bool is_view() const;
  /// Throws CorruptData if this is a view of a shard that was truncated or written to since, or
  /// that could not be read. Bytes that were read before the call may then be wrong.
  void check() const;

 private:
  friend class BatchPipeline;
  explicit Batch(std::unique_ptr<BatchBuffer> buffer);
  [[nodiscard]] std::size_t column_number(std::string_view name) const;
  std::unique_ptr<BatchBuffer> buffer_;
};

/// Counts and waiting times since the loader was made.
struct LoaderStats {
  std::uint64_t batches = 0;                    // returned
  std::uint64_t views = 0;                      // of these, returned without a copy
  std::uint64_t bytes_touched = 0;              // of shards, for all batches filled so far
  std::chrono::nanoseconds consumer_waited{0};  // by next(), for a batch
  std::chrono::nanoseconds workers_waited{0};   // by each thread, for room to fill
  double batches_ahead = 0;  // mean number of ready batches when next() was called

  /// A sentence that says whether the consumer or the workers wait, and what to change.
  [[nodiscard]] std::string bottleneck() const;
};

/// The position of a Loader or DeviceLoader in its run; only used through these two.
///
/// Use one loader from one thread at a time. In a process that was forked since the loader was
/// made, every call throws InvalidArgument: make another loader there.
class LoaderBase {
 public:
  /// Blocks until the next batch is ready or `time` has passed; returns false on timeout. Lets a
  /// caller do something else meanwhile, such as checking for Ctrl-C.
  [[nodiscard]] bool wait_for(std::chrono::nanoseconds time);

  /// The number of batches of a whole epoch, and of those of this epoch that next() has not
  /// returned yet.
  [[nodiscard]] std::uint64_t batches_per_epoch() const;
  [[nodiscard]] std::uint64_t batches_left() const;
  [[nodiscard]] std::uint64_t epoch() const;
  /// Continues at the beginning of an epoch.
  void set_epoch(std::uint64_t epoch);
  /// The progress after the last batch that next() returned; batches filled ahead do not count.
  /// After the last batch of an epoch it is the beginning of the next one.
  [[nodiscard]] OrderState state() const;
  /// Resumes from a state, with its seed and order; if no rank has a batch left in its epoch, with
  /// the next one. Throws InvalidArgument if the state is invalid or belongs to a dataset of
  /// another size.
  void resume(const OrderState& state);

  /// The type and shape of each row of the next batch.
  [[nodiscard]] TensorSpec spec() const;
  /// The number of tensors of each sample, and the type and shape of one.
  [[nodiscard]] std::size_t views() const;
  [[nodiscard]] TensorSpec view_spec(std::size_t view) const;
  /// Sets the image size of a view from `epoch` on, until the next epoch with its own size. Without
  /// `epoch`, the size holds from the first epoch of which next() has returned no batch. Returns
  /// the epoch. resume() and set_epoch() restore the sizes that were set for an epoch. The crop, or
  /// the last operation of the view that sets a size, makes images of the new size. Throws
  /// InvalidArgument if there is none, or if the size has more pixels than
  /// BatchTransform::max_size.
  std::uint64_t set_size(ImageSize size, std::size_t view = 0,
                         std::optional<std::uint64_t> epoch = {});
  /// The draws of a view's operations for a sample in an epoch, in their order. Rectangles count
  /// stored pixels.
  [[nodiscard]] std::vector<OperationDraw> draw(std::uint64_t sample, std::uint64_t epoch,
                                                std::size_t view = 0,
                                                std::uint32_t repeat = 0) const;
  /// Sentences about options that are valid but probably not meant.
  [[nodiscard]] std::vector<std::string> warnings() const;

 protected:
  explicit LoaderBase(std::unique_ptr<LoaderCore> core);
  LoaderBase(LoaderBase&&) noexcept;
  LoaderBase& operator=(LoaderBase&&) noexcept;
  ~LoaderBase();
  [[nodiscard]] LoaderCore& core() const;

 private:
  void check_view(std::size_t view) const;
  std::unique_ptr<LoaderCore> core_;
};

/// Returns the batches of one epoch after another; its own threads fill them ahead of their use.
///
/// Batches come in the order that docs/reader.md specifies, for any number of threads. The
/// destructor waits for the threads. Batches that were returned stay valid, and they and datasets
/// also work in a forked process.
class Loader : public LoaderBase {
 public:
  /// Starts the threads. Throws InvalidArgument for invalid options, Unsupported if the samples are
  /// not tensors of one spec.
  explicit Loader(const Dataset& dataset, const LoaderOptions& options = {});

  /// The next batch, or none at the end of the epoch; the call after that begins the next epoch.
  /// Throws IoError or CorruptData, with the path of the shard, if a shard cannot be read. state()
  /// then does not include the batch, and every call throws the same until resume() or set_epoch().
  [[nodiscard]] std::optional<Batch> next();
  /// The counts up to now.
  [[nodiscard]] LoaderStats stats() const;
  /// The columns of each batch, as Batch::columns() has them.
  [[nodiscard]] std::span<const NamedColumn> columns() const&;
  std::span<const NamedColumn> columns() const&& = delete;
};

}  // namespace precache
