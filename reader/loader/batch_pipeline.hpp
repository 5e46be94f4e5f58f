// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "precache/reader/loader.hpp"
#include "reader/loader/batch_buffer.hpp"
#include "reader/loader/batch_filler.hpp"
#include "reader/loader/loader_core.hpp"
#include "reader/loader/loader_options.hpp"
#include "reader/loader/schedule.hpp"
#include "reader/shards/shard_set.hpp"

namespace precache {

/// The batches of a Loader, in a ring and in the order in which they will be returned.
///
/// Worker threads announce and fill them; the consumer takes the first. Loader documents the
/// functions that both have.
class BatchPipeline : public LoaderCore {
 public:
  /// REQUIRES: the shards have a spec.
  BatchPipeline(std::shared_ptr<const ShardSet> shards, const LoaderOptions& options,
                const BatchPlacement& placement);
  ~BatchPipeline() override { stop(); }

  [[nodiscard]] std::optional<Batch> next();
  [[nodiscard]] bool wait_for(std::chrono::nanoseconds time) override;
  /// True if next() would return without waiting.
  [[nodiscard]] bool is_next_ready() const;

  [[nodiscard]] std::uint64_t batches_per_epoch() const override;
  [[nodiscard]] std::uint64_t batches_left() const override;
  [[nodiscard]] OrderState state() const override;
  void resume(const OrderState& state) override;
  [[nodiscard]] bool has_failed() const override;

  [[nodiscard]] const EpochPasses& passes() const override { return passes_; }
  std::uint64_t set_size(ImageSize size, std::size_t view,
                         std::optional<std::uint64_t> epoch) override;
  [[nodiscard]] std::vector<OperationDraw> draw(const SampleKey& key) const override;
  /// The size of the picture that a sample was made of, if it is known. Throws IoError,
  /// CorruptData.
  [[nodiscard]] std::optional<ImageSize> original_size(std::uint64_t sample) const {
    return filler_.original_size(sample);
  }
  /// The same for each sample of a batch; 0x0 if it is not known.
  [[nodiscard]] static std::span<const ImageSize> original_sizes(const Batch& batch);
  [[nodiscard]] std::span<const NamedColumn> columns() const {
    const NamedColumns& columns = passes_.at(next_begun(state()))->columns();
    return columns == nullptr ? std::span<const NamedColumn>() : *columns;
  }
  [[nodiscard]] LoaderStats stats() const;

 private:
  [[nodiscard]] OrderState begin_of(std::uint64_t epoch) const {
    return {position_count(options_, shards_->samples()), options_.order, options_.seed, epoch, 0};
  }
  /// Waits until no thread fills a batch, drops all that are ahead, and plans from `schedule` on.
  void restart(std::unique_lock<std::mutex>& lock, const Schedule& schedule);
  void stop();
  void note_call();
  bool wait_until(std::unique_lock<std::mutex>& lock, std::chrono::steady_clock::time_point end);

  void work();
  bool take_turn(std::unique_lock<std::mutex>& lock);
  void begin_batch(std::unique_lock<std::mutex>& lock);
  void fill_rows(BatchBuffer& batch, std::unique_lock<std::mutex>& lock);
  void note_view(BatchBuffer& batch);
  template <typename Call>
  void run_unlocked(BatchBuffer& batch, std::unique_lock<std::mutex>& lock, const Call& call);

  [[nodiscard]] const std::unique_ptr<BatchBuffer>& at(std::size_t i) const {
    return ring_[(head_ + i) % ring_.size()];
  }
  [[nodiscard]] BatchBuffer& front() { return *ring_[head_]; }
  std::unique_ptr<BatchBuffer> pop_front();
  [[nodiscard]] std::size_t ready_count() const;

  const LoaderOptions options_;
  std::optional<WeightedOrder> weighted_;
  const std::shared_ptr<const ShardSet> shards_;
  EpochPasses passes_;  // the consumer alone changes it, and reads it without the lock
  const BatchFiller filler_;
  const std::shared_ptr<BufferPool> pool_;

  mutable std::mutex mutex_;  // guards the members below, and the progress of slots in the ring
  std::condition_variable work_there_;
  std::condition_variable batch_ready_;
  std::condition_variable idle_;
  Schedule consumed_;  // up to the last returned batch
  Schedule planned_;   // up to the last batch in the ring
  std::vector<std::unique_ptr<BatchBuffer>> ring_;
  std::size_t head_ = 0;
  std::size_t count_ = 0;
  std::size_t busy_ = 0;  // threads that work without the lock
  bool pausing_ = false;
  bool stopping_ = false;
  std::exception_ptr failure_;                            // of no particular batch
  std::array<std::weak_ptr<const MappedShard>, 4> lent_;  // shards of the last views
  std::uint64_t calls_ = 0;                               // for a batch, waited or not
  bool is_waiting_ = false;                               // the last call has no batch yet
  LoaderStats stats_;
  std::vector<std::thread> threads_;
};

}  // namespace precache
