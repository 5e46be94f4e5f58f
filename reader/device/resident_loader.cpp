// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <deque>
#include <new>
#include <utility>

#include "formats/bytes/checked_math.hpp"
#include "precache/formats/error.hpp"
#include "reader/device/cuda_handles.hpp"
#include "reader/device/device_loader_impl.hpp"
#include "reader/device/device_ring.hpp"
#include "reader/device/epoch_plans.hpp"
#include "reader/device/pixel_kernel.hpp"
#include "reader/device/resident_set.hpp"
#include "reader/device/transform_plan.hpp"
#include "reader/loader/augment/epoch_passes.hpp"
#include "reader/loader/batch_pipeline.hpp"
#include "reader/loader/schedule.hpp"

namespace precache {
namespace {

constexpr std::uint64_t kAlignment = 256;  // of cudaMalloc

/// A copy of some numbers on the device.
template <typename T>
device::DeviceMemory uploaded(const T* values, std::size_t count, int device) {
  if (count == 0) return {};
  auto memory = device::allocate_device(device, count * sizeof(T));
  device::check(cudaMemcpy(memory.get(), values, count * sizeof(T), cudaMemcpyHostToDevice),
                "cudaMemcpy", device);
  return memory;
}

}  // namespace

/// Launches a kernel that chooses the samples of a batch, and those that make its pixels. The host
/// does not look at samples.
class DeviceLoader::Resident final : public DeviceLoader::Impl {
 public:
  Resident(const Dataset& dataset, const LoaderOptions& options, const DeviceOptions& device)
      : Impl(options),
        device_(device.device),
        stored_(dataset.spec()),
        samples_(dataset.size()),
        passes_(stored_, options.transform),
        options_(validated(options, dataset.size())),
        choices_(std::make_shared<const Choices>(options_)),
        consumed_(begin_of(position_count(options_, dataset.size())), options_),
        planned_(consumed_) {
    device::check_device(device_);
    const device::CurrentDevice current(device_);
    core_.reset(new Core(*this, dataset, device));
    stats_.reason = "Resident: the dataset was copied to the device.";
    stats_.bytes_resident = core_->set.bytes();
  }

  std::optional<DeviceBatch> next() override {
    if (failure_) std::rethrow_exception(failure_);
    try {
      const device::CurrentDevice current(device_);
      core_->ring->check_releases();
      launch_ahead();
      return take();
    } catch (const DeviceError&) {
      failure_ = std::current_exception();
      core_.reset();
      throw;
    }
  }

  bool wait_for(std::chrono::nanoseconds) override { return true; }  // for no storage

  void resume(const OrderState& state) override {
    if (failure_) std::rethrow_exception(failure_);
    check_state(state, consumed_.state.samples, choices_->weighted.has_value());
    restart(Schedule(state, options_));  // throws before anything changes
  }

  [[nodiscard]] const EpochPasses& passes() const override { return passes_; }
  std::uint64_t set_size(ImageSize size, std::size_t view,
                         std::optional<std::uint64_t> epoch) override {
    const std::uint64_t from = epoch.value_or(next_begun(consumed_.state_now()));
    EpochPasses changed = passes_.with_size(size, view, from);
    std::swap(passes_, changed);
    if (failure_) return from;
    // Batches that are ahead may have been made for the old size.
    if (!passes_.agree(changed, consumed_.state.epoch, planned_.state.epoch)) {
      restart(Schedule(consumed_));
    }
    return from;
  }
  [[nodiscard]] std::vector<OperationDraw> draw(const SampleKey& key) const override {
    if (failure_) std::rethrow_exception(failure_);
    check_key(key, samples_, options_.repeats);
    return passes_.at(key.epoch)->view(key.view).draw(key, core_->set.original(key.sample));
  }

  [[nodiscard]] std::uint64_t batches_per_epoch() const override {
    return Schedule(begin_of(consumed_.state.samples), options_).batches();
  }
  [[nodiscard]] std::uint64_t batches_left() const override {
    return consumed_.batches() - consumed_.step;
  }
  [[nodiscard]] OrderState state() const override { return consumed_.state_now(); }
  [[nodiscard]] bool has_failed() const override { return failure_ != nullptr; }
  [[nodiscard]] DeviceStats stats() const override { return stats_; }

 private:
  /// The subset and the weights on the host. Batches that outlive the loader keep them, to list
  /// their samples.
  struct Choices {
    explicit Choices(const LoaderOptions& options) : subset(options.subset) {
      if (!options.weights.empty()) weighted.emplace(options.weights);
    }
    std::optional<std::vector<std::uint64_t>> subset;
    std::optional<WeightedOrder> weighted;
  };

  /// The next result of next(): a place of the ring, or the end of the epoch.
  struct Entry {
    std::optional<std::size_t> place;
    DeviceBatch::Parts parts;
  };

  /// Everything that is freed when the device fails, in the order of construction.
  struct Core {
    Core(const Resident& loader, const Dataset& dataset, const DeviceOptions& device)
        : set(dataset.shards_, loader.options_.threads, device.resident_up_to_bytes, device.device),
          plans(loader.stored_, loader.largest_rows(), device.device,
                device::TransformPlan::Copies::kByKernel),
          ring(std::make_shared<device::DeviceRing>(device.device, device.device_batches,
                                                    plans.batch_bytes(loader.passes_))) {
      const std::uint64_t rows = loader.largest_rows();
      const bool has_lists = plans.of(loader.passes_.at(0), ring->stream())->has_lists();
      const std::uint64_t row_bytes = has_lists ? sizeof(device::RowKey) : sizeof(AugmentationDraw);
      const std::uint64_t draws_at = round_up(rows * sizeof(std::uint64_t), kAlignment);
      scratch = device::allocate_device(device.device, draws_at + rows * row_bytes);
      choice.samples = dataset.size();
      choice.repeats = loader.options_.repeats;
      choice.rows = reinterpret_cast<std::uint64_t*>(scratch.get());
      if (has_lists) {
        choice.keys = reinterpret_cast<device::RowKey*>(scratch.get() + draws_at);
      } else {
        choice.choices = reinterpret_cast<AugmentationDraw*>(scratch.get() + draws_at);
      }
      upload(*loader.choices_, device.device);
    }
    Core(const Core&) = delete;
    Core& operator=(const Core&) = delete;
    ~Core() {
      // The members' destructors free memory that kernels may still read.
      if (ring != nullptr && cudaStreamSynchronize(ring->stream()) != cudaSuccess) {
        (void)cudaGetLastError();
      }
    }

    void upload(const Choices& choices, int number) {
      if (choices.subset) {
        subset = uploaded(choices.subset->data(), choices.subset->size(), number);
        choice.subset = reinterpret_cast<const std::uint64_t*>(subset.get());
      }
      if (choices.weighted) {
        weights = choices.weighted->weights();
        sums = uploaded(weights.sums, weights.count, number);
        weights.sums = reinterpret_cast<const double*>(sums.get());
      }
      originals = uploaded(set.originals().data(), set.originals().size(), number);
      choice.originals = reinterpret_cast<const ImageSize*>(originals.get());
    }

    device::ResidentSet set;
    device::EpochPlans plans;
    std::shared_ptr<device::DeviceRing> ring;
    device::DeviceMemory originals;
    device::DeviceMemory subset;
    device::DeviceMemory sums;
    device::DeviceMemory scratch;  // rows and their draws or keys, of one batch
    device::ResidentWork choice;
    WeightSums weights;  // on the device
    std::deque<Entry> queue;
  };

  struct DropCore {
    void operator()(Core* core) const {
      const device::CurrentDevice current(core->ring->device(), std::nothrow);
      delete core;
    }
  };

  [[nodiscard]] OrderState begin_of(std::uint64_t positions) const {
    return {positions, options_.order, options_.seed, 0, 0};
  }

  [[nodiscard]] std::uint64_t largest_rows() const {
    return std::max<std::uint64_t>(largest_batch(options_, samples_), 1);
  }
  void restart(const Schedule& schedule) {
    for (const Entry& entry : core_->queue) {
      if (entry.place) core_->ring->give_back(*entry.place);
    }
    core_->queue.clear();
    consumed_ = planned_ = schedule;
  }

  std::optional<DeviceBatch> take() {
    Entry entry = std::move(core_->queue.front());
    core_->queue.pop_front();
    if (!entry.place) {
      consumed_ = Schedule(consumed_.state.next_epoch(), options_);
      return std::nullopt;
    }
    ++consumed_.step;
    ++stats_.batches;
    return lend(std::move(entry.parts), core_->ring->lend(*entry.place));
  }

  /// Launches the batches for all free places of the ring, up to the end of the epoch.
  void launch_ahead() {
    for (;;) {
      const bool must = core_->queue.empty();
      if (!must && !core_->queue.back().place) return;
      if (!planned_.has_batch()) {
        core_->queue.emplace_back();
        planned_ = Schedule(planned_.state.next_epoch(), options_);
        return;
      }
      const auto place = core_->ring->first_free();
      if (place) {
        launch(*place);
      } else if (must) {
        core_->ring->throw_full();
      } else {
        return;
      }
    }
  }

  void launch(std::size_t place) {
    device::DeviceRing& ring = *core_->ring;
    const auto [first, count] = planned_.slices.slice(planned_.step);
    const OrderState& state = planned_.state;
    device::ResidentWork& choice = core_->choice;
    choice.order = planned_.order.keys();
    const bool is_weighted = state.order.shuffle == Shuffle::kWeighted;
    choice.weights = is_weighted ? core_->weights : WeightSums();
    choice.seed = state.seed;
    choice.epoch = state.epoch;
    choice.first = first;
    choice.count = static_cast<std::uint32_t>(count);
    const device::TransformPlan& plan = *core_->plans.of(passes_.at(state.epoch), ring.stream());
    choice.rule = plan.passes().view(0).pass().crop_rule();
    std::byte* const out = ring.memory(place);
    // All allocations come first: once the place is taken, only the device can fail.
    core_->queue.push_back(
        {place,
         {plan.passes().view(0).result(), count, sample_list(choice), out,
          reinterpret_cast<std::int64_t*>(out + plan.labels_at(count)), ring.ready(place), device_,
          DevicePath::kResident, more_views(plan, count, out)}});
    ring.take_first_free();
    ++planned_.step;
    ring.wait_for_users(place);
    device::check(device::launch_choice(choice, ring.stream()), "cudaLaunchKernel", device_);
    device::TransformPlan::Input input;
    input.tensors = core_->set.tensors();
    input.labels = core_->set.labels();
    input.stored = samples_;
    input.rows = choice.rows;
    input.choices = choice.choices;
    input.keys = choice.keys;
    input.samples = choice.count;
    input.seed = state.seed;
    input.epoch = state.epoch;
    plan.launch(input, out, ring.stream());
    device::check(cudaEventRecord(ring.ready(place), ring.stream()), "cudaEventRecord", device_);
    ++stats_.resident;
  }

  /// The samples as the kernel chooses them, for a host that asks.
  [[nodiscard]] std::shared_ptr<device::SampleList> sample_list(device::ResidentWork work) const {
    return std::make_shared<device::SampleList>([work, choices = choices_]() mutable {
      if (work.subset != nullptr) work.subset = choices->subset->data();
      if (work.weights.sums != nullptr) work.weights = choices->weighted->weights();
      std::vector<std::uint64_t> samples(work.count);
      for (std::uint64_t row = 0; row < work.count; ++row) {
        samples[row] = device::chosen_sample(work, row);
      }
      return samples;
    });
  }

  const int device_;
  const TensorSpec stored_;
  const std::uint64_t samples_;
  EpochPasses passes_;
  const LoaderOptions options_;
  const std::shared_ptr<const Choices> choices_;
  Schedule consumed_;                     // up to the last returned batch
  Schedule planned_;                      // up to the last launched batch
  std::unique_ptr<Core, DropCore> core_;  // none after a failure
  std::exception_ptr failure_;
  DeviceStats stats_;
};

std::unique_ptr<LoaderCore> DeviceLoader::Impl::make_resident(const Dataset& dataset,
                                                              const LoaderOptions& options,
                                                              const DeviceOptions& device) {
  return std::make_unique<Resident>(dataset, options, device);
}

}  // namespace precache
