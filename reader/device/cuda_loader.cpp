// SPDX-License-Identifier: Apache-2.0

#include <deque>
#include <new>
#include <utility>

#include "precache/formats/error.hpp"
#include "reader/device/batch_copier.hpp"
#include "reader/device/cuda_handles.hpp"
#include "reader/device/device_lease.hpp"
#include "reader/device/device_loader_impl.hpp"
#include "reader/device/device_ring.hpp"
#include "reader/device/epoch_plans.hpp"
#include "reader/device/pinned_buffers.hpp"
#include "reader/device/registered_shards.hpp"
#include "reader/device/transform_plan.hpp"
#include "reader/loader/augment/epoch_passes.hpp"
#include "reader/loader/batch_pipeline.hpp"
#include "reader/loader/option_checks.hpp"

namespace precache {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostBatches = 1024;

void validate(const LoaderOptions& options, const DeviceOptions& device) {
  if (device.device_path == DevicePath::kStrided && options.order.shuffle != Shuffle::kNone) {
    throw InvalidArgument("strided copies need neighbours, but the order is shuffled",
                          "Use `device_path` gather, or turn `shuffle` off.");
  }
}

}  // namespace

/// Reads stored tensors with a BatchPipeline. Each call of next() copies as many of its batches
/// into the ring as there is room for.
class DeviceLoader::Copying final : public DeviceLoader::Impl {
 public:
  Copying(const Dataset& dataset, const LoaderOptions& options, const DeviceOptions& device)
      : Impl(options),
        device_(device.device),
        stored_(dataset.spec()),
        largest_batch_(std::max<std::uint64_t>(largest_batch(options, dataset.size()), 1)),
        samples_(dataset.size()),
        repeats_(options.repeats),
        passes_(stored_, options.transform) {
    validate(options, device);
    device::check_device(device_);
    const device::CurrentDevice current(device_);
    core_.reset(new Core(dataset, *this, options, device));
    stats_.reason = core_->source.reason;
    stats_.bytes_registered = core_->source.bytes_registered;
    state_ = core_->loader.state();
    batches_left_ = core_->loader.batches_left();
    batches_per_epoch_ = core_->loader.batches_per_epoch();
  }

  std::optional<DeviceBatch> next() override {
    if (failure_) std::rethrow_exception(failure_);
    try {
      const device::CurrentDevice current(device_);
      if (must_resume_) resume(state_);
      core_->ring->check_releases();
      fill_ahead();
      return take();
    } catch (const DeviceError&) {
      failure_ = std::current_exception();
      stats_.host = core_->loader.stats();
      core_.reset();
      throw;
    } catch (const std::bad_alloc&) {
      must_resume_ = true;  // a batch that was read may be lost
      throw;
    }
  }

  bool wait_for(std::chrono::nanoseconds time) override {
    // After a failure, or with a batch on its way, next() does not wait for storage.
    return failure_ || !core_->queue.empty() || core_->loader.wait_for(time);
  }

  void resume(const OrderState& state) override {
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

  [[nodiscard]] const EpochPasses& passes() const override { return passes_; }
  std::uint64_t set_size(ImageSize size, std::size_t view,
                         std::optional<std::uint64_t> epoch) override {
    const std::uint64_t from = epoch.value_or(next_begun(state_));
    EpochPasses changed = passes_.with_size(size, view, from);
    std::swap(passes_, changed);
    if (failure_) return from;
    // Batches that are ahead may have been made for the old size.
    if (!passes_.agree(changed, state_.epoch, core_->loader.state().epoch)) resume(state_);
    return from;
  }
  [[nodiscard]] std::vector<OperationDraw> draw(const SampleKey& key) const override {
    if (failure_) std::rethrow_exception(failure_);
    check_key(key, samples_, repeats_);
    return passes_.at(key.epoch)->view(key.view).draw(key, core_->loader.original_size(key.sample));
  }

  [[nodiscard]] std::uint64_t batches_per_epoch() const override { return batches_per_epoch_; }
  [[nodiscard]] std::uint64_t batches_left() const override { return batches_left_; }
  [[nodiscard]] OrderState state() const override { return state_; }
  [[nodiscard]] bool has_failed() const override { return failure_ || reading_failed_; }
  [[nodiscard]] DeviceStats stats() const override {
    DeviceStats stats = stats_;
    if (core_ != nullptr) stats.host = core_->loader.stats();
    return stats;
  }

 private:
  /// The next result of next(): a place of the ring, or the end of the epoch.
  struct Entry {
    std::optional<std::size_t> place;
    DeviceBatch::Parts parts;
    OrderState state;  // after it is returned
    std::uint64_t batches_left = 0;
  };

  /// Everything that is freed when the device fails, in the order of construction.
  struct Core {
    Core(const Dataset& dataset, const Copying& owner, const LoaderOptions& options,
         const DeviceOptions& device)
        : source(device::choose_source(*dataset.shards_, device)),
          plans(owner.stored_, owner.largest_batch_, device.device,
                device::TransformPlan::Copies::kByCaller),
          copier(dataset.shards_, owner.largest_batch_, source.registered.get(), device.device_path,
                 device.device),
          ring(std::make_shared<device::DeviceRing>(device.device, device.device_batches,
                                                    plans.batch_bytes(owner.passes_))),
          // One for each batch that is filled ahead, and for each that may be being copied.
          pinned(device.device, options.prefetch + device.device_batches, copier.buffer_bytes()),
          loader(dataset.shards_, stored(options), {[this] { return pinned.take(); }, in_place()}),
          batches(device.device_batches) {
      copier.add_plan(*plans.of(owner.passes_.at(0), ring->stream()));
    }
    Core(const Core&) = delete;
    Core& operator=(const Core&) = delete;
    ~Core() {
      // The members' destructors free memory that copies may still read.
      if (cudaStreamSynchronize(ring->stream()) != cudaSuccess) (void)cudaGetLastError();
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
    device::EpochPlans plans;
    device::BatchCopier copier;
    std::shared_ptr<device::DeviceRing> ring;
    device::PinnedBuffers pinned;
    BatchPipeline loader;
    std::vector<std::optional<Batch>> batches;  // by place, the batch that was copied to it last
    std::deque<Entry> queue;
  };

  struct DropCore {
    void operator()(Core* core) const {
      const device::CurrentDevice current(core->ring->device(), std::nothrow);
      delete core;
    }
  };

  std::optional<DeviceBatch> take() {
    Entry entry = std::move(core_->queue.front());
    core_->queue.pop_front();
    std::optional<DeviceBatch> batch;
    if (entry.place) {
      batch = lend(std::move(entry.parts), core_->ring->lend(*entry.place));
      ++stats_.batches;
    }
    state_ = entry.state;
    batches_left_ = entry.batches_left;
    return batch;
  }

  /// Fills free places as long as no wait is needed, but at least one place.
  void fill_ahead() {
    device::DeviceRing& ring = *core_->ring;
    for (;;) {
      const bool must = core_->queue.empty();
      const auto place = ring.first_free();
      if (!place) {
        if (must) {
          ring.throw_full();
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
        return;  // thrown again once the batches before it are returned
      }
    }
  }

  /// Frees the buffer that a place was filled from. Returns false if the copy is not finished and
  /// `wait` is false.
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

  /// Reads the next batch and starts its copy. Returns false at the end of an epoch.
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
    // All allocations come first: once the place is taken, only the device can fail.
    const device::EpochPlans::Plan& plan =
        core_->plans.of(passes_.at(entry.state.epoch), ring.stream());
    core_->copier.add_plan(*plan);
    core_->copier.prepare(*next, entry.state, plan, ring, place);
    entry.place = place;
    entry.parts = {plan->passes().view(0).result(),
                   next->size(),
                   device::SampleList::of({next->samples().begin(), next->samples().end()}),
                   ring.memory(place),
                   nullptr,
                   ring.ready(place),
                   device_,
                   {},
                   more_views(*plan, next->size(), ring.memory(place))};
    core_->queue.push_back(std::move(entry));
    ring.take_first_free();
    // Kept before anything is copied: if a call fails, copies that have begun continue.
    const Batch& batch = core_->batches[place].emplace(std::move(*next));
    ring.wait_for_users(place);
    const device::BatchCopier::Copied copied = core_->copier.copy(batch, ring, place);
    device::check(cudaEventRecord(ring.ready(place), ring.stream()), "cudaEventRecord", device_);
    core_->queue.back().parts.labels = copied.labels;
    core_->queue.back().parts.path = copied.path;
    stats_.bytes_copied += copied.bytes;
    ++(copied.path == DevicePath::kStaged    ? stats_.staged
       : copied.path == DevicePath::kStrided ? stats_.strided
                                             : stats_.gathered);
    return true;
  }

  const int device_;
  const TensorSpec stored_;
  const std::uint64_t largest_batch_;
  const std::uint64_t samples_;
  const std::uint32_t repeats_;
  EpochPasses passes_;
  std::unique_ptr<Core, DropCore> core_;  // none after a failure
  std::exception_ptr failure_;
  bool reading_failed_ = false;  // for a batch that was not asked for yet
  bool must_resume_ = false;     // batches after the returned ones may be lost
  OrderState state_;             // after the last returned batch
  std::uint64_t batches_left_ = 0;
  std::uint64_t batches_per_epoch_ = 0;
  DeviceStats stats_;
};

std::unique_ptr<LoaderCore> DeviceLoader::make_core(const Dataset& dataset,
                                                    const LoaderOptions& options,
                                                    const DeviceOptions& device) {
  if (!options.columns.empty()) {
    throw Unsupported("a DeviceLoader does not copy named columns, so `columns` must be empty",
                      "Use a Loader, and copy its batches to the device.");
  }
  check_count("device_batches", device.device_batches, kMostBatches);
  check_count("prefetch", options.prefetch, kMostBatches);
  if (device.device_path == DevicePath::kResident) {
    return Impl::make_resident(dataset, options, device);
  }
  return std::make_unique<Copying>(dataset, options, device);
}

DeviceLoader::DeviceLoader(const Dataset& dataset, const LoaderOptions& options,
                           const DeviceOptions& device)
    : LoaderBase(make_core(dataset, options, device)) {}

DeviceLoader::Impl& DeviceLoader::impl() const { return static_cast<Impl&>(core()); }
std::optional<DeviceBatch> DeviceLoader::next() { return impl().next(); }
DeviceStats DeviceLoader::stats() const { return impl().stats(); }

}  // namespace precache
