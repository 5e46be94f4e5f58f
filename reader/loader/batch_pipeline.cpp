// SPDX-License-Identifier: Apache-2.0
#include "reader/loader/batch_pipeline.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "formats/os/bus_fault.hpp"
#include "precache/formats/error.hpp"
#include "reader/loader/ring_memory.hpp"

namespace precache {
namespace {

using Clock = std::chrono::steady_clock;

/// Blocks signals in the threads that start meanwhile, so that the program's own threads get them.
/// Faults stay enabled: they belong to the thread that causes them.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    for (const int fault : {SIGBUS, SIGSEGV, SIGFPE, SIGILL}) ::sigdelset(&all, fault);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

std::function<AlignedBuffer()> buffers(const BatchPlacement& placement, const BatchFiller& filler) {
  if (placement.take_buffer) return placement.take_buffer;
  return [bytes = filler.batch_bytes()] { return AlignedBuffer(bytes); };
}

}  // namespace

BatchPipeline::BatchPipeline(std::shared_ptr<const ShardSet> shards, const LoaderOptions& options,
                             const BatchPlacement& placement)
    : LoaderCore(options),
      options_(validated(options, shards->samples())),
      shards_(std::move(shards)),
      passes_(*shards_->spec(), options_.transform, columns_of(*shards_, options_.columns)),
      filler_(
          shards_, options_,
          // Batches whose tensors stay where they are need no memory here.
          placement.in_place != nullptr
              ? passes_.largest_batch_bytes(largest_batch(options_, shards_->samples()))
              : ring_batch_bytes(passes_, options_, largest_batch(options_, shards_->samples())),
          placement.in_place),
      pool_(std::make_shared<BufferPool>(options_.prefetch + 1, buffers(placement, filler_))),
      consumed_(begin_of(0), options_),
      planned_(consumed_),
      ring_(options_.prefetch) {
  if (!options_.weights.empty()) weighted_.emplace(options_.weights);
  if (shards_->handle_bus_errors()) bus_fault::install_handler();
  const SignalsBlocked blocked;
  try {
    for (unsigned i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { work(); });
  } catch (...) {
    stop();
    throw;
  }
}

std::optional<Batch> BatchPipeline::next() {
  std::unique_lock lock(mutex_);
  // If the shard of an earlier view was truncated, the consumer may have read zeros.
  for (const auto& shard : lent_) {
    if (const auto alive = shard.lock()) alive->check();
  }
  note_call();
  (void)wait_until(lock, Clock::time_point::max());
  is_waiting_ = false;
  if (failure_) std::rethrow_exception(failure_);
  if (front().error) std::rethrow_exception(front().error);
  if (front().ends_epoch) {
    pool_->give_back(pop_front());
    consumed_ = Schedule(consumed_.state.next_epoch(), options_);
    return std::nullopt;
  }
  if (front().view != nullptr) {
    note_view(front());
    ++stats_.views;
  }
  ++consumed_.step;
  ++stats_.batches;
  auto batch = pop_front();
  batch->home = pool_;
  return Batch(std::move(batch));
}

bool BatchPipeline::wait_for(std::chrono::nanoseconds time) {
  std::unique_lock lock(mutex_);
  note_call();
  return wait_until(lock, Clock::now() + time);
}

bool BatchPipeline::is_next_ready() const {
  const std::lock_guard lock(mutex_);
  return failure_ || ready_count() != 0;
}

std::uint64_t BatchPipeline::batches_per_epoch() const {
  return Schedule(begin_of(0), options_).batches();
}

std::uint64_t BatchPipeline::batches_left() const {
  const std::lock_guard lock(mutex_);
  return consumed_.batches() - consumed_.step;
}

OrderState BatchPipeline::state() const {
  const std::lock_guard lock(mutex_);
  return consumed_.state_now();
}

void BatchPipeline::resume(const OrderState& state) {
  check_state(state, position_count(options_, shards_->samples()), weighted_.has_value());
  const Schedule schedule(state, options_);  // throws before anything changes
  std::unique_lock lock(mutex_);
  restart(lock, schedule);
}

void BatchPipeline::restart(std::unique_lock<std::mutex>& lock, const Schedule& schedule) {
  pausing_ = true;
  idle_.wait(lock, [&] { return busy_ == 0; });
  while (count_ != 0) pool_->give_back(pop_front());
  failure_ = nullptr;
  lent_ = {};
  consumed_ = planned_ = schedule;
  pausing_ = false;
  work_there_.notify_all();
}

std::uint64_t BatchPipeline::set_size(ImageSize size, std::size_t view,
                                      std::optional<std::uint64_t> epoch) {
  const std::uint64_t from = epoch.value_or(next_begun(state()));
  EpochPasses changed = passes_.with_size(size, view, from);
  std::unique_lock lock(mutex_);
  std::swap(passes_, changed);
  // Batches that are ahead may have been made for the old size.
  if (!passes_.agree(changed, consumed_.state.epoch, planned_.state.epoch)) {
    restart(lock, consumed_);
  }
  return from;
}

std::vector<OperationDraw> BatchPipeline::draw(const SampleKey& key) const {
  check_key(key, shards_->samples(), options_.repeats);
  return passes_.at(key.epoch)->view(key.view).draw(key, filler_.original_size(key.sample));
}

std::span<const ImageSize> BatchPipeline::original_sizes(const Batch& batch) {
  return batch.buffer_->originals;
}

bool BatchPipeline::has_failed() const {
  const std::lock_guard lock(mutex_);
  bool has_failed = failure_ != nullptr;
  for (std::size_t i = 0; i < count_; ++i) has_failed = has_failed || at(i)->error;
  return has_failed;
}

LoaderStats BatchPipeline::stats() const {
  const std::lock_guard lock(mutex_);
  LoaderStats stats = stats_;
  if (calls_ != 0) stats.batches_ahead /= static_cast<double>(calls_);
  stats.workers_waited /= options_.threads;
  return stats;
}

void BatchPipeline::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  work_there_.notify_all();
  for (auto& thread : threads_) thread.join();
}

/// Counts each batch that the consumer asks for once, even if it asks repeatedly.
void BatchPipeline::note_call() {
  if (is_waiting_) return;
  is_waiting_ = true;
  stats_.batches_ahead += static_cast<double>(ready_count());
  ++calls_;
}

bool BatchPipeline::wait_until(std::unique_lock<std::mutex>& lock, Clock::time_point end) {
  const auto is_ready = [&] { return failure_ || (count_ != 0 && front().is_ready()); };
  if (is_ready()) return true;
  const auto begin = Clock::now();
  const bool ready = batch_ready_.wait_until(lock, end, is_ready);
  stats_.consumer_waited += Clock::now() - begin;
  return ready;
}

void BatchPipeline::work() {
  ::pthread_setname_np(::pthread_self(), "precache");
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    try {
      if (!pausing_ && !failure_ && take_turn(lock)) continue;
    } catch (...) {  // memory ran out before there was a batch to keep the error
      failure_ = std::current_exception();
      batch_ready_.notify_one();
    }
    const auto begin = Clock::now();
    work_there_.wait(lock);
    stats_.workers_waited += Clock::now() - begin;
  }
}

/// Announces a batch if the ring has room, so that the system starts to read its data. Otherwise
/// fills rows of the first batch that has any left. False if there is nothing to do.
bool BatchPipeline::take_turn(std::unique_lock<std::mutex>& lock) {
  if (count_ < ring_.size()) {
    begin_batch(lock);
    return true;
  }
  // Until the first batch is returned, only fill that one: the consumer that waits for it then
  // finds a free core (docs/performance.md).
  const std::size_t batches = calls_ != 0 && stats_.batches == 0 ? 1 : count_;
  for (std::size_t i = 0; i < batches; ++i) {
    BatchBuffer& batch = *at(i);
    if (!batch.is_announced || batch.error || batch.rows_claimed == batch.samples.size()) continue;
    fill_rows(batch, lock);
    return true;
  }
  return false;
}

void BatchPipeline::begin_batch(std::unique_lock<std::mutex>& lock) {
  ring_[(head_ + count_) % ring_.size()] = pool_->take();
  BatchBuffer& batch = *at(count_++);
  batch.epoch = planned_.state.epoch;
  batch.passes = passes_.at(batch.epoch);
  if (!planned_.has_batch()) {
    batch.ends_epoch = true;
    batch.samples.clear();
    planned_ = Schedule(planned_.state.next_epoch(), options_);
    batch_ready_.notify_one();
    return;
  }
  const auto [first, rows] = planned_.slices.slice(planned_.step++);
  const OrderState state = planned_.state;
  const EpochOrder order = planned_.order;
  run_unlocked(batch, lock, [&, first = first, rows = rows] {
    const bool is_weighted = state.order.shuffle == Shuffle::kWeighted;
    batch.samples.resize(rows);
    batch.repeats.resize(rows);
    for (std::uint64_t i = 0; i < rows; ++i) {
      const std::uint64_t place = (first + i) % state.samples;
      const std::uint64_t position = place / options_.repeats;
      batch.repeats[i] = static_cast<std::uint32_t>(place % options_.repeats);
      const std::uint64_t chosen =
          is_weighted ? weighted_->draw(state.seed, state.epoch, position) : order[position];
      batch.samples[i] = options_.subset ? (*options_.subset)[chosen] : chosen;
    }
    filler_.announce(batch, *pool_);
  });
  batch.is_announced = true;
  work_there_.notify_all();
  if (batch.is_ready()) batch_ready_.notify_one();
}

void BatchPipeline::fill_rows(BatchBuffer& batch, std::unique_lock<std::mutex>& lock) {
  const std::size_t first = batch.rows_claimed;
  const std::size_t rows = std::min(filler_.chunk_rows(batch), batch.samples.size() - first);
  batch.rows_claimed += rows;
  const std::uint64_t seed = planned_.state.seed;
  std::uint64_t bytes = 0;
  run_unlocked(batch, lock, [&] { bytes = filler_.fill(batch, first, rows, seed); });
  stats_.bytes_touched += bytes;
  batch.rows_done += rows;
  if (batch.is_ready()) batch_ready_.notify_one();
}

/// Checks a view that is about to be returned, and remembers its shard.
void BatchPipeline::note_view(BatchBuffer& batch) {
  try {
    batch.view->check();
  } catch (...) {
    batch.error = std::current_exception();
    throw;
  }
  if (lent_.back().lock() == batch.view) return;
  std::rotate(lent_.begin(), lent_.begin() + 1, lent_.end());
  lent_.back() = batch.view;
}

/// Calls without the lock. An exception becomes the error of the batch.
template <typename Call>
void BatchPipeline::run_unlocked(BatchBuffer& batch, std::unique_lock<std::mutex>& lock,
                                 const Call& call) {
  ++busy_;
  lock.unlock();
  std::exception_ptr error;
  try {
    call();
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  if (error && !batch.error) batch.error = error;
  if (--busy_ == 0) idle_.notify_all();
}

std::unique_ptr<BatchBuffer> BatchPipeline::pop_front() {
  auto batch = std::move(ring_[head_]);
  head_ = (head_ + 1) % ring_.size();
  --count_;
  work_there_.notify_all();
  return batch;
}

std::size_t BatchPipeline::ready_count() const {
  std::size_t ready = 0;
  while (ready < count_ && at(ready)->is_ready()) ++ready;
  return ready;
}

}  // namespace precache
