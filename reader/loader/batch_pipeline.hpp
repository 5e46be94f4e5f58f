// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "formats/os/fork.hpp"
#include "precache/reader/loader.hpp"
#include "reader/loader/batch_buffer.hpp"
#include "reader/loader/batch_filler.hpp"
#include "reader/loader/schedule.hpp"
#include "reader/shards/shard_set.hpp"

namespace precache {

/// A ring of batches in the order in which they will be returned; threads announce and fill them,
/// the consumer takes the first. What a Loader is made of; its functions are documented there.
class BatchPipeline {
 public:
  /// REQUIRES: the shards have a spec.
  BatchPipeline(std::shared_ptr<const ShardSet> shards, const LoaderOptions& options,
                const BatchPlacement& placement);
  BatchPipeline(const BatchPipeline&) = delete;
  BatchPipeline& operator=(const BatchPipeline&) = delete;
  ~BatchPipeline() { stop(); }

  /// A forked process has none of the threads, and its copy of the locks may be held by them.
  [[nodiscard]] bool is_of_this_process() const { return generation_ == fork_generation(); }

  [[nodiscard]] std::optional<Batch> next();
  [[nodiscard]] bool wait_for(std::chrono::nanoseconds time);
  /// Whether next() would not wait.
  [[nodiscard]] bool is_next_ready() const;

  [[nodiscard]] std::uint64_t batches_per_epoch() const;
  [[nodiscard]] std::uint64_t batches_left() const;
  void set_epoch(std::uint64_t epoch);
  [[nodiscard]] OrderState state() const;
  void resume(const OrderState& state);

  [[nodiscard]] const TensorSpec& spec() const { return filler_.spec(); }
  [[nodiscard]] LoaderStats stats() const;
  [[nodiscard]] std::vector<std::string> warnings() const { return filler_.pass().warnings(); }

 private:
  [[nodiscard]] OrderState begin_of(std::uint64_t epoch) const {
    return {shards_->samples(), options_.order, options_.seed, epoch, 0};
  }
  void restart(const OrderState& state);
  void stop();
  void note_call();
  bool wait_until(std::unique_lock<std::mutex>& lock, std::chrono::steady_clock::time_point end);

  void work();
  bool try_turn(std::unique_lock<std::mutex>& lock);
  bool take_turn(std::unique_lock<std::mutex>& lock);
  void begin_batch(std::unique_lock<std::mutex>& lock);
  void fill_rows(BatchBuffer& slot, std::unique_lock<std::mutex>& lock);
  void note_view(BatchBuffer& slot);
  template <typename Call>
  void run_unlocked(BatchBuffer& slot, std::unique_lock<std::mutex>& lock, const Call& call);

  [[nodiscard]] const std::unique_ptr<BatchBuffer>& at(std::size_t i) const {
    return ring_[(head_ + i) % ring_.size()];
  }
  [[nodiscard]] BatchBuffer& front() { return *ring_[head_]; }
  std::unique_ptr<BatchBuffer> pop_front();
  [[nodiscard]] std::size_t ready_count() const;

  const std::uint64_t generation_ = fork_generation();
  const LoaderOptions options_;
  const std::shared_ptr<const ShardSet> shards_;
  const BatchFiller filler_;
  const std::shared_ptr<BufferPool> pool_;

  mutable std::mutex mutex_;  // guards what follows, and the progress of slots in the ring
  std::condition_variable work_there_;
  std::condition_variable batch_ready_;
  std::condition_variable idle_;
  Schedule consumed_;  // after the batches that were returned
  Schedule planned_;   // after those in the ring
  std::vector<std::unique_ptr<BatchBuffer>> ring_;
  std::size_t head_ = 0;
  std::size_t count_ = 0;
  std::size_t busy_ = 0;  // threads at work outside the lock
  bool pausing_ = false;
  bool stopping_ = false;
  std::exception_ptr failure_;                            // that no batch has
  std::array<std::weak_ptr<const MappedShard>, 4> lent_;  // the last shards that views were of
  std::uint64_t calls_ = 0;                               // for a batch
  bool is_waiting_ = false;                               // for the batch of the last call
  LoaderStats stats_;
  std::vector<std::thread> threads_;
};

/// How many samples the largest batch has.
[[nodiscard]] std::uint64_t largest_batch(const LoaderOptions& options, std::uint64_t samples);

}  // namespace precache
