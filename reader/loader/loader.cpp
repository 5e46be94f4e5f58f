// SPDX-License-Identifier: Apache-2.0
#include "precache/reader/loader.hpp"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "formats/os/bus_fault.hpp"
#include "formats/os/fork.hpp"
#include "precache/formats/error.hpp"
#include "precache/formats/usable_threads.hpp"
#include "reader/loader/batch_buffer.hpp"
#include "reader/loader/batch_filler.hpp"
#include "reader/shards/shard_set.hpp"

namespace precache {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kLargestBatch = UINT32_MAX;
// More of the same few samples than this in one batch is a mistake, which would take all memory.
constexpr std::uint64_t kLargestPaddedBatch = 1 << 20;
constexpr std::uint64_t kLargestWorld =
    1 << 24;  // positions of one step beyond any dataset still fit

LoaderOptions validated(LoaderOptions options, std::uint64_t samples) {
  if (options.batch_size == 0 || options.batch_size > kLargestBatch) {
    throw InvalidArgument(fmt::format("a batch size of {}", options.batch_size));
  }
  if (options.tail == Tail::kPad && options.batch_size > std::max(samples, kLargestPaddedBatch)) {
    throw InvalidArgument(
        fmt::format("batches of {} samples, padded from {}", options.batch_size, samples),
        fmt::format("They can have {}.", std::max(samples, kLargestPaddedBatch)));
  }
  if (options.world_size == 0 || options.world_size > kLargestWorld ||
      options.rank >= options.world_size) {
    throw InvalidArgument(fmt::format("rank {} of a world of {}", options.rank, options.world_size),
                          "Ranks count from 0.");
  }
  if (options.prefetch == 0) throw InvalidArgument("a prefetch of 0 batches");
  if (options.threads == 0) options.threads = usable_threads();
  return options;
}

/// Signals meant for the program go to its own threads, not to ours. Faults are always the
/// thread's own.
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

}  // namespace

/// The epochs of a run from some point on, cut into this rank's batches.
struct Schedule {
  OrderState state;  // at the begin of `slices`
  RankSlices slices;
  EpochOrder order;
  std::uint64_t step = 0;

  Schedule(const OrderState& from, const LoaderOptions& options)
      : state(from),
        slices{from.samples, from.position,      options.batch_size,
               options.rank, options.world_size, options.tail},
        order(from.samples, from.order, from.seed, from.epoch) {}

  /// Whether this rank has a batch at `step`.
  [[nodiscard]] bool has_batch() const {
    return step < slices.steps() && slices.slice(step).count != 0;
  }
  [[nodiscard]] std::uint64_t batches() const {
    const std::uint64_t steps = slices.steps();
    // With Tail::kKeep this rank may have none at the last step.
    return steps != 0 && slices.slice(steps - 1).count == 0 ? steps - 1 : steps;
  }
  [[nodiscard]] OrderState state_now() const {
    OrderState now = state;
    now.position = slices.position_after(step);
    return now;
  }
  [[nodiscard]] OrderState next_epoch() const {
    OrderState next = state;
    ++next.epoch;
    next.position = 0;
    return next;
  }
};

/// A ring of batches in the order in which they will be returned; threads announce and fill them,
/// the consumer takes the first.
class Loader::Impl {
 public:
  Impl(Dataset dataset, const LoaderOptions& options, const BatchPlacement& placement)
      : options_(validated(options, dataset.size())),
        dataset_(std::move(dataset)),
        filler_(tensor_shards(dataset_), options_.transform, largest_batch(), options_.writable,
                placement.in_place),
        pool_(std::make_shared<BufferPool>(options_.prefetch + 1, buffers(placement))),
        warnings_(filler_.pass().warnings()),
        consumed_(begin_of(0), options_),
        planned_(consumed_),
        ring_(options_.prefetch) {
    if (dataset_.shards_->handle_bus_errors()) bus_fault::install_handler();
    const SignalsBlocked blocked;
    try {
      for (unsigned i = 0; i < options_.threads; ++i) threads_.emplace_back([this] { work(); });
    } catch (...) {
      stop();
      throw;
    }
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() { stop(); }

  /// A forked process has no threads of ours, and its copy of our locks may be held by them.
  [[nodiscard]] bool is_of_this_process() const { return generation_ == fork_generation(); }

  std::optional<Batch> next() {
    std::unique_lock lock(mutex_);
    // What was read of earlier views may be zeros of a shard that was cut meanwhile.
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
      consumed_ = Schedule(consumed_.next_epoch(), options_);
      return std::nullopt;
    }
    if (front().view != nullptr) note_view(front());
    ++consumed_.step;
    ++stats_.batches;
    if (front().view != nullptr) ++stats_.views;
    auto slot = pop_front();
    slot->home = pool_;
    return Batch(std::move(slot));
  }

  bool wait_for(std::chrono::nanoseconds time) {
    std::unique_lock lock(mutex_);
    note_call();
    return wait_until(lock, Clock::now() + time);
  }

  void restart(const OrderState& state) {
    const Schedule schedule(state, options_);  // throws before anything changes
    std::unique_lock lock(mutex_);
    pausing_ = true;
    idle_.wait(lock, [&] { return busy_ == 0; });
    while (count_ != 0) pool_->give_back(pop_front());
    failure_ = nullptr;
    lent_ = {};
    consumed_ = planned_ = schedule;
    pausing_ = false;
    work_there_.notify_all();
  }

  [[nodiscard]] OrderState state() const {
    const std::lock_guard lock(mutex_);
    return consumed_.state_now();
  }
  [[nodiscard]] std::uint64_t batches_per_epoch() const {
    return Schedule(begin_of(0), options_).batches();
  }
  [[nodiscard]] std::uint64_t batches_left() const {
    const std::lock_guard lock(mutex_);
    return consumed_.batches() - consumed_.step;
  }
  [[nodiscard]] LoaderStats stats() const {
    const std::lock_guard lock(mutex_);
    LoaderStats stats = stats_;
    if (calls_ != 0) stats.batches_ahead /= static_cast<double>(calls_);
    stats.workers_waited /= options_.threads;
    return stats;
  }
  /// Whether a batch that was filled ahead has an error.
  [[nodiscard]] bool has_failed() {
    const std::lock_guard lock(mutex_);
    if (failure_) return true;
    for (std::size_t i = 0; i < count_; ++i) {
      if (at(i).error) return true;
    }
    return false;
  }
  [[nodiscard]] bool is_next_ready() {
    const std::lock_guard lock(mutex_);
    return failure_ || ready_count() != 0;
  }
  [[nodiscard]] OrderState begin_of(std::uint64_t epoch) const {
    return {dataset_.size(), options_.order, options_.seed, epoch, 0};
  }
  [[nodiscard]] const Dataset& dataset() const { return dataset_; }
  [[nodiscard]] const TensorSpec& spec() const { return filler_.spec(); }
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  /// Throws Unsupported if there are no tensors.
  static std::shared_ptr<const ShardSet> tensor_shards(const Dataset& dataset) {
    static_cast<void>(dataset.spec());
    return dataset.shards_;
  }

  [[nodiscard]] std::uint64_t largest_batch() const {
    return options_.tail == Tail::kPad ? options_.batch_size
                                       : std::min(options_.batch_size, dataset_.size());
  }

  [[nodiscard]] std::function<AlignedBuffer()> buffers(const BatchPlacement& placement) const {
    if (placement.take_buffer) return placement.take_buffer;
    return [bytes = filler_.batch_bytes()] { return AlignedBuffer(bytes); };
  }

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    work_there_.notify_all();
    for (auto& thread : threads_) thread.join();
  }

  /// Counts a consumer who comes for a batch, however often he asks until he has it.
  void note_call() {
    if (is_waiting_) return;
    is_waiting_ = true;
    stats_.batches_ahead += static_cast<double>(ready_count());
    ++calls_;
  }

  bool wait_until(std::unique_lock<std::mutex>& lock, Clock::time_point end) {
    const auto is_ready = [&] { return failure_ || (count_ != 0 && front().is_ready()); };
    if (is_ready()) return true;
    const auto begin = Clock::now();
    const bool ready = batch_ready_.wait_until(lock, end, is_ready);
    stats_.consumer_waited += Clock::now() - begin;
    return ready;
  }

  void work() {
    ::pthread_setname_np(::pthread_self(), "precache");
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      if (pausing_ || failure_ || !try_turn(lock)) {
        const auto begin = Clock::now();
        work_there_.wait(lock);
        stats_.workers_waited += Clock::now() - begin;
      }
    }
  }

  /// Memory may run out where no batch is there yet to note it.
  bool try_turn(std::unique_lock<std::mutex>& lock) {
    try {
      return take_turn(lock);
    } catch (...) {
      failure_ = std::current_exception();
      batch_ready_.notify_one();
      return false;
    }
  }

  /// Announces a batch where there is room, so that its data is on the way, or else fills rows of
  /// the first batch that has any left. False if there is nothing to do.
  bool take_turn(std::unique_lock<std::mutex>& lock) {
    if (count_ < ring_.size()) {
      begin_batch(lock);
      return true;
    }
    // The first batch of all alone: whoever waits for it finds a free core when it is there
    // (docs/performance.md).
    const std::size_t batches = calls_ != 0 && stats_.batches == 0 ? 1 : count_;
    for (std::size_t i = 0; i < batches; ++i) {
      Batch::Buffer& slot = at(i);
      if (!slot.is_announced || slot.error || slot.rows_claimed == slot.samples.size()) continue;
      fill_rows(slot, lock);
      return true;
    }
    return false;
  }

  void begin_batch(std::unique_lock<std::mutex>& lock) {
    at_pointer(count_) = pool_->take();
    Batch::Buffer& slot = at(count_++);
    slot.epoch = planned_.state.epoch;
    if (!planned_.has_batch()) {
      slot.ends_epoch = true;
      slot.samples.clear();
      planned_ = Schedule(planned_.next_epoch(), options_);
      batch_ready_.notify_one();
      return;
    }
    const auto [first, rows] = planned_.slices.slice(planned_.step++);
    const EpochOrder order = planned_.order;
    run_unlocked(slot, lock, [&, first = first, rows = rows] {
      slot.samples.resize(rows);
      for (std::uint64_t i = 0; i < rows; ++i) {
        slot.samples[i] = order[(first + i) % order.samples()];
      }
      filler_.announce(slot, *pool_);
    });
    slot.is_announced = true;
    work_there_.notify_all();
    if (slot.is_ready()) batch_ready_.notify_one();
  }

  void fill_rows(Batch::Buffer& slot, std::unique_lock<std::mutex>& lock) {
    const std::size_t first = slot.rows_claimed;
    const std::size_t rows = std::min(filler_.chunk_rows(slot), slot.samples.size() - first);
    slot.rows_claimed += rows;
    const std::uint64_t seed = planned_.state.seed;
    std::uint64_t bytes = 0;
    run_unlocked(slot, lock, [&] { bytes = filler_.fill(slot, first, rows, seed); });
    stats_.bytes_touched += bytes;
    slot.rows_done += rows;
    if (slot.is_ready()) batch_ready_.notify_one();
  }

  /// Checks a view that is about to be handed out, and remembers its shard.
  void note_view(Batch::Buffer& slot) {
    try {
      slot.view->check();
    } catch (...) {
      slot.error = std::current_exception();
      throw;
    }
    if (lent_.back().lock() == slot.view) return;
    std::rotate(lent_.begin(), lent_.begin() + 1, lent_.end());
    lent_.back() = slot.view;
  }

  /// Calls without the lock; what is thrown becomes the slot's error.
  template <typename Call>
  void run_unlocked(Batch::Buffer& slot, std::unique_lock<std::mutex>& lock, const Call& call) {
    ++busy_;
    lock.unlock();
    std::exception_ptr error;
    try {
      call();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    if (error && !slot.error) slot.error = error;
    if (--busy_ == 0) idle_.notify_all();
  }

  [[nodiscard]] std::unique_ptr<Batch::Buffer>& at_pointer(std::size_t i) {
    return ring_[(head_ + i) % ring_.size()];
  }
  [[nodiscard]] Batch::Buffer& front() { return *ring_[head_]; }
  std::unique_ptr<Batch::Buffer> pop_front() {
    auto slot = std::move(ring_[head_]);
    head_ = (head_ + 1) % ring_.size();
    --count_;
    work_there_.notify_all();
    return slot;
  }
  [[nodiscard]] std::size_t ready_count() {
    std::size_t ready = 0;
    while (ready < count_ && at_pointer(ready)->is_ready()) ++ready;
    return ready;
  }
  [[nodiscard]] Batch::Buffer& at(std::size_t i) { return *at_pointer(i); }

  const std::uint64_t generation_ = fork_generation();
  const LoaderOptions options_;
  const Dataset dataset_;
  const BatchFiller filler_;
  const std::shared_ptr<BufferPool> pool_;
  const std::vector<std::string> warnings_;

  mutable std::mutex mutex_;  // guards what follows, and the progress of slots in the ring
  std::condition_variable work_there_;
  std::condition_variable batch_ready_;
  std::condition_variable idle_;
  Schedule consumed_;  // behind the batches that were returned
  Schedule planned_;   // behind those in the ring
  std::vector<std::unique_ptr<Batch::Buffer>> ring_;
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

std::string LoaderStats::verdict() const {
  const auto text = [](std::chrono::nanoseconds time) {
    return fmt::format("{:.3f} s", std::chrono::duration<double>(time).count());
  };
  if (consumer_waited > workers_waited) {
    return fmt::format(
        "the consumer waits ({} against {} of the workers): give the loader more threads, "
        "or do less per sample",
        text(consumer_waited), text(workers_waited));
  }
  return fmt::format(
      "the workers wait ({} against {} of the consumer): loading is not the bottleneck",
      text(workers_waited), text(consumer_waited));
}

Loader::Loader(Dataset dataset, const LoaderOptions& options)
    : Loader(std::move(dataset), options, BatchPlacement()) {}
Loader::Loader(Dataset dataset, const LoaderOptions& options, const BatchPlacement& placement)
    : impl_(std::make_unique<Impl>(std::move(dataset), options, placement)) {}
Loader::Loader(Loader&&) noexcept = default;

Loader& Loader::operator=(Loader&& other) noexcept {
  std::swap(impl_, other.impl_);
  return *this;
}

Loader::~Loader() {
  // Threads that are not there cannot be joined.
  if (impl_ != nullptr && !impl_->is_of_this_process()) (void)impl_.release();
}

Loader::Impl& Loader::impl() const {
  if (!impl_->is_of_this_process()) {
    throw InvalidArgument("a loader cannot be used in a process that was forked since it was made",
                          "Make the loader in the process that uses it.");
  }
  return *impl_;
}

std::optional<Batch> Loader::next() { return impl().next(); }

bool Loader::is_next_ready() const { return impl().is_next_ready(); }

bool Loader::wait_for(std::chrono::nanoseconds time) { return impl().wait_for(time); }

std::uint64_t Loader::batches_per_epoch() const { return impl().batches_per_epoch(); }

std::uint64_t Loader::batches_left() const { return impl().batches_left(); }

std::uint64_t Loader::epoch() const { return impl().state().epoch; }

void Loader::set_epoch(std::uint64_t epoch) {
  const OrderState now = impl().state();
  // What is filled ahead stays good, unless it failed: the reason may be gone.
  if (now.epoch == epoch && now.position == 0 && !impl().has_failed()) return;
  OrderState state = now;
  state.epoch = epoch;
  state.position = 0;
  impl().restart(state);
}

OrderState Loader::state() const { return impl().state(); }

void Loader::resume(const OrderState& state) {
  if (state.samples != impl().dataset().size()) {
    throw InvalidArgument(fmt::format("the state is of a dataset of {} samples, this one has {}",
                                      state.samples, impl().dataset().size()));
  }
  if (state.position > state.samples) {
    throw InvalidArgument("the state lies behind the last sample");
  }
  impl().restart(state);
}

const TensorSpec& Loader::spec() const { return impl().spec(); }

LoaderStats Loader::stats() const { return impl().stats(); }

const std::vector<std::string>& Loader::warnings() const { return impl().warnings(); }

}  // namespace precache
