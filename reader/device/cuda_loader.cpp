// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <deque>
#include <mutex>
#include <new>
#include <utility>

#include "formats/os/fork.hpp"
#include "precache/formats/error.hpp"
#include "reader/device/batch_copier.hpp"
#include "reader/device/cuda_handles.hpp"
#include "reader/device/device_lease.hpp"
#include "reader/device/device_ring.hpp"
#include "reader/device/registered_shards.hpp"
#include "reader/loader/batch_pipeline.hpp"
#include "reader/loader/pixel_pass.hpp"

namespace precache {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostBatches = 1024;

void validate(const LoaderOptions& options, const DeviceOptions& device) {
  if (device.device_batches == 0 || device.device_batches > kMostBatches) {
    throw InvalidArgument(fmt::format("`device_batches` must be between 1 and {}, got {}",
                                      kMostBatches, device.device_batches));
  }
  if (device.device_path == DevicePath::kStrided && options.order.shuffle != Shuffle::kNone) {
    throw InvalidArgument("strided copies take neighbours, but the order is shuffled",
                          "Use `device_path` gather, or no `shuffle`.");
  }
}

/// Pinned memory for batches: all that is ever needed at once, allocated at first, since to pin and
/// unpin takes milliseconds.
class PinnedBuffers {
 public:
  PinnedBuffers(int device, std::size_t count, std::size_t bytes) {
    for (std::size_t i = 0; i < count; ++i) {
      all_.push_back(device::allocate_pinned(device, bytes));
      free_.push_back(all_.back().get());
    }
  }
  /// REQUIRES: the buffer is destroyed before this is, and there are not more than `count`.
  AlignedBuffer take() {
    const std::lock_guard lock(mutex_);
    assert(!free_.empty());
    std::byte* const buffer = free_.back();
    free_.pop_back();
    return {buffer, [this](std::byte* bytes) {
              const std::lock_guard free_lock(mutex_);
              free_.push_back(bytes);
            }};
  }

 private:
  std::vector<device::PinnedMemory> all_;
  std::mutex mutex_;
  std::vector<std::byte*> free_;
};

}  // namespace

/// A loader of stored tensors, whose batches are put into the ring as far ahead as there is room
/// whenever next() is called.
class DeviceLoader::Impl {
 public:
  Impl(const Dataset& dataset, const LoaderOptions& options, const DeviceOptions& device)
      : device_(device.device),
        pass_(dataset.spec(), options.transform),
        warnings_(pass_.warnings()) {
    validate(options, device);
    device::check_device(device_);
    const device::CurrentDevice current(device_);
    core_.reset(new Core(dataset, pass_, options, device));
    stats_.reason = core_->source.reason;
    stats_.bytes_registered = core_->source.bytes_registered;
    state_ = core_->loader.state();
    batches_left_ = core_->loader.batches_left();
    batches_per_epoch_ = core_->loader.batches_per_epoch();
  }

  [[nodiscard]] bool is_of_this_process() const { return generation_ == fork_generation(); }

  std::optional<DeviceBatch> next() {
    if (failure_) std::rethrow_exception(failure_);
    try {
      if (must_resume_) resume(state_);
      const device::CurrentDevice current(device_);
      core_->ring->check_releases();
      fill_ahead();
      return take();
    } catch (const DeviceError&) {
      failure_ = std::current_exception();
      stats_.host = core_->loader.stats();
      core_.reset();
      throw;
    } catch (const std::bad_alloc&) {
      must_resume_ = true;  // a batch that was read may be gone
      throw;
    }
  }

  bool wait_for(std::chrono::nanoseconds time) {
    // After a failure, or with a batch on its way, the disk is not what next() waits for.
    return failure_ || !core_->queue.empty() || core_->loader.wait_for(time);
  }

  void resume(const OrderState& state) {
    if (failure_) std::rethrow_exception(failure_);
    core_->loader.resume(state);  // throws before anything changes
    for (const Entry& entry : core_->queue) {
      if (entry.place) core_->ring->give_back(*entry.place);
    }
    core_->queue.clear();
    reading_failed_ = false;
    must_resume_ = false;
    state_ = core_->loader.state();
    batches_left_ = core_->loader.batches_left();
  }

  [[nodiscard]] std::uint64_t batches_per_epoch() const { return batches_per_epoch_; }
  [[nodiscard]] std::uint64_t batches_left() const { return batches_left_; }
  [[nodiscard]] OrderState state() const { return state_; }
  [[nodiscard]] bool has_failed() const { return failure_ || reading_failed_; }
  [[nodiscard]] const TensorSpec& spec() const { return pass_.result(); }
  [[nodiscard]] DeviceStats stats() const {
    DeviceStats stats = stats_;
    if (core_ != nullptr) stats.host = core_->loader.stats();
    return stats;
  }
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }

 private:
  /// What next() will return: a place of the ring, or the epoch's end.
  struct Entry {
    std::optional<std::size_t> place;
    DeviceBatch::Parts parts;
    OrderState state;  // once it is returned
    std::uint64_t batches_left = 0;
  };

  /// All that is freed when the device fails, in the order in which it is made.
  struct Core {
    Core(const Dataset& dataset, const PixelPass& pass, const LoaderOptions& options,
         const DeviceOptions& device)
        : source(device::choose_source(*dataset.shards_, device)),
          copier(dataset.shards_, pass, largest_batch(options, dataset.size()),
                 source.registered.get(), device.device_path, device.device),
          ring(std::make_shared<device::DeviceRing>(device.device, device.device_batches,
                                                    copier.place_bytes())),
          pinned(device.device, checked_buffers(options, device), copier.buffer_bytes()),
          loader(dataset.shards_, stored(options), {[this] { return pinned.take(); }, in_place()}),
          batches(device.device_batches) {}
    Core(const Core&) = delete;
    Core& operator=(const Core&) = delete;
    ~Core() {
      // What follows gives back memory that copies may still read.
      if (cudaStreamSynchronize(ring->stream()) != cudaSuccess) (void)cudaGetLastError();
    }

    /// Every batch that is filled ahead, and every one whose copy may be under way.
    static std::size_t checked_buffers(const LoaderOptions& options, const DeviceOptions& device) {
      if (options.prefetch == 0 || options.prefetch > kMostBatches) {
        throw InvalidArgument(fmt::format("`prefetch` must be between 1 and {}, got {}",
                                          kMostBatches, options.prefetch));
      }
      return options.prefetch + device.device_batches;
    }
    [[nodiscard]] ShardBytes in_place() const {
      if (source.registered == nullptr) return {};
      return [shards = source.registered.get()](std::size_t shard) { return shards->bytes(shard); };
    }
    static LoaderOptions stored(LoaderOptions options) {
      options.transform = {};
      options.writable = true;  // views are not pinned
      return options;
    }

    device::Source source;
    device::BatchCopier copier;
    std::shared_ptr<device::DeviceRing> ring;
    PinnedBuffers pinned;
    BatchPipeline loader;
    std::vector<std::optional<Batch>> batches;  // by place, what was copied to it last
    std::deque<Entry> queue;
  };

  struct DropCore {
    void operator()(Core* core) const {
      const device::CurrentDevice current(core->ring->device(), std::nothrow);
      delete core;
    }
  };

  /// What is first in the queue, for the consumer.
  std::optional<DeviceBatch> take() {
    Entry entry = std::move(core_->queue.front());
    core_->queue.pop_front();
    std::optional<DeviceBatch> batch;
    if (entry.place) {
      batch = DeviceBatch(std::move(entry.parts), core_->ring->lend(*entry.place));
      ++stats_.batches;
    }
    state_ = entry.state;
    batches_left_ = entry.batches_left;
    return batch;
  }

  /// Puts batches into all free places, as long as that takes no waiting; into one at least.
  void fill_ahead() {
    device::DeviceRing& ring = *core_->ring;
    for (;;) {
      const bool must = core_->queue.empty();
      const auto place = ring.first_free();
      if (!place) {
        if (must) {
          throw InvalidArgument(
              fmt::format("all {} batches on the device are held", ring.size()),
              "Release batches before asking for more, or raise `device_batches`.");
        }
        return;
      }
      if (!must && (reading_failed_ || !core_->loader.is_next_ready())) return;
      if (!drop_batch(*place, must)) return;
      try {
        if (!load(*place)) return;
      } catch (const DeviceError&) {
        throw;
      } catch (const Error&) {
        reading_failed_ = true;
        if (must) throw;
        return;  // thrown again when all that was read before is returned
      }
    }
  }

  /// Ends the use of the buffer that a place was filled from. False if its copy is not done and
  /// `wait` is not set.
  bool drop_batch(std::size_t place, bool wait) {
    auto& batch = core_->batches[place];
    if (!batch) return true;
    const cudaEvent_t ready = core_->ring->ready(place);
    const cudaError_t error = cudaEventQuery(ready);
    if (error == cudaErrorNotReady) {
      (void)cudaGetLastError();
      if (!wait) return false;
      const auto begin = Clock::now();
      device::check(cudaEventSynchronize(ready), "cudaEventSynchronize", device_);
      stats_.device_waited += Clock::now() - begin;
    } else {
      device::check(error, "cudaEventQuery", device_);
    }
    batch.reset();
    return true;
  }

  /// False at the end of an epoch.
  bool load(std::size_t place) {
    device::DeviceRing& ring = *core_->ring;
    std::optional<Batch> next = core_->loader.next();
    Entry entry;
    entry.state = core_->loader.state();
    entry.batches_left = core_->loader.batches_left();
    if (!next) {
      core_->queue.push_back(std::move(entry));
      return false;
    }
    // What takes memory comes first: when the place is taken, a failing device is all that is left.
    core_->copier.prepare(*next, entry.state, ring, place);
    entry.place = place;
    entry.parts = {pass_.result(),
                   {next->samples().begin(), next->samples().end()},
                   ring.memory(place),
                   nullptr,
                   ring.ready(place),
                   device_,
                   {}};
    core_->queue.push_back(std::move(entry));
    ring.take_first_free();
    // Kept here before anything is copied: should a call fail, copies that were begun go on.
    const Batch& batch = core_->batches[place].emplace(std::move(*next));
    ring.wait_for_users(place);
    const device::BatchCopier::Copied copied = core_->copier.copy(batch, ring, place);
    device::check(cudaEventRecord(ring.ready(place), ring.stream()), "cudaEventRecord", device_);
    core_->queue.back().parts.labels = copied.labels;
    core_->queue.back().parts.path = copied.path;
    count(copied);
    return true;
  }

  void count(const device::BatchCopier::Copied& copied) {
    stats_.bytes_copied += copied.bytes;
    ++(copied.path == DevicePath::kStaged    ? stats_.staged
       : copied.path == DevicePath::kStrided ? stats_.strided
                                             : stats_.gathered);
  }

  const std::uint64_t generation_ = fork_generation();
  const int device_;
  const PixelPass pass_;
  const std::vector<std::string> warnings_;
  std::unique_ptr<Core, DropCore> core_;  // none after a failure
  std::exception_ptr failure_;
  bool reading_failed_ = false;  // ahead of what was returned
  bool must_resume_ = false;     // what was returned is all that is sure
  OrderState state_;             // behind what was returned
  std::uint64_t batches_left_ = 0;
  std::uint64_t batches_per_epoch_ = 0;
  DeviceStats stats_;
};

DeviceLoader::DeviceLoader(Dataset dataset, const LoaderOptions& options,
                           const DeviceOptions& device)
    : impl_(std::make_unique<Impl>(dataset, options, device)) {}
DeviceLoader::DeviceLoader(DeviceLoader&&) noexcept = default;

DeviceLoader& DeviceLoader::operator=(DeviceLoader&& other) noexcept {
  std::swap(impl_, other.impl_);
  return *this;
}

DeviceLoader::~DeviceLoader() {
  // Neither the threads nor CUDA are there.
  if (impl_ != nullptr && !impl_->is_of_this_process()) (void)impl_.release();
}

DeviceLoader::Impl& DeviceLoader::impl() const {
  if (!impl_->is_of_this_process()) {
    throw InvalidArgument("a loader cannot be used in a process that was forked since it was made",
                          "Make the loader in the process that uses it.");
  }
  return *impl_;
}

std::optional<DeviceBatch> DeviceLoader::next() { return impl().next(); }
bool DeviceLoader::wait_for(std::chrono::nanoseconds time) { return impl().wait_for(time); }
std::uint64_t DeviceLoader::batches_per_epoch() const { return impl().batches_per_epoch(); }
std::uint64_t DeviceLoader::batches_left() const { return impl().batches_left(); }
std::uint64_t DeviceLoader::epoch() const { return impl().state().epoch; }

void DeviceLoader::set_epoch(std::uint64_t epoch) {
  OrderState state = impl().state();
  // What is on its way stays good, unless it failed: the reason may be gone.
  if (state.epoch == epoch && state.position == 0 && !impl().has_failed()) return;
  state.epoch = epoch;
  state.position = 0;
  impl().resume(state);
}

OrderState DeviceLoader::state() const { return impl().state(); }
void DeviceLoader::resume(const OrderState& state) { impl().resume(state); }
TensorSpec DeviceLoader::spec() const { return impl().spec(); }
DeviceStats DeviceLoader::stats() const { return impl().stats(); }
std::vector<std::string> DeviceLoader::warnings() const { return impl().warnings(); }

}  // namespace precache
