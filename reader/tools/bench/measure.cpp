// SPDX-License-Identifier: Apache-2.0
#include "precache/tools/measure.hpp"

#include <chrono>
#include <thread>
#include <type_traits>

#include "precache/formats/error.hpp"

namespace precache {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

LoaderOptions for_measuring(LoaderOptions options) {
  options.last_batch = LastBatch::kPad;
  options.writable = true;
  return options;
}

/// Takes batches of a Loader or DeviceLoader, one at a time.
template <typename AnyLoader>
class Consumer {
 public:
  /// `device` is a DeviceOptions or nothing.
  template <typename... Device>
  Consumer(const Dataset& dataset, const LoaderOptions& options, const Device&... device)
      : loader_(dataset, for_measuring(options), device...),
        batch_size_(options.batch_size),
        ahead_(options.prefetch + (std::size_t{0} + ... + device.device_batches)) {}

  LoadRate measure_rate(const MeasureOptions& measure) {
    // Batches that were ready before they were asked for would make the beginning look faster.
    for (std::size_t i = 0; i <= ahead_; ++i) {
      take();
      give_back();
    }
    LoadRate rate;
    const auto begin = Clock::now();
    do {
      take();
      give_back();
      ++rate.batches;
      rate.seconds = seconds_since(begin);
    } while (rate.seconds < measure.seconds && rate.batches < measure.batches);
    rate.images = rate.batches * batch_size_;
    if constexpr (kIsDevice) {
      // All batches are equal, so the ones that are still being copied make no difference.
      const DeviceStats stats = loader_.stats();
      const std::uint64_t copied = stats.staged + stats.strided + stats.gathered;
      // A resident dataset is not copied: its rate is that of the batches.
      rate.bytes = copied != 0 ? stats.bytes_copied / copied * rate.batches
                               : rate.images * loader_.spec().size_bytes();
    } else {
      rate.bytes = rate.images * loader_.spec().size_bytes();
    }
    return rate;
  }

  LoadMeasurement measure_all(const MeasureOptions& measure) {
    LoadMeasurement result{measure_rate(measure), {}};
    if (measure.step_seconds > 0) result.wait = measure_wait(measure);
    return result;
  }

  DeviceMeasurement measure_path(DevicePath path, const MeasureOptions& measure) {
    return {path, "", measure_all(measure), loader_.stats().bytes_registered};
  }

 private:
  static constexpr bool kIsDevice = std::is_same_v<AnyLoader, DeviceLoader>;

  StepWait measure_wait(const MeasureOptions& measure) {
    StepWait wait;
    take();
    const auto begin = Clock::now();
    do {
      std::this_thread::sleep_for(std::chrono::duration<double>(measure.step_seconds));
      give_back();
      const auto asked = Clock::now();
      take();
      wait.waited_seconds += seconds_since(asked);
      ++wait.steps;
      wait.seconds = seconds_since(begin);
    } while (wait.seconds < measure.seconds && wait.steps < measure.batches);
    give_back();
    return wait;
  }

  void take() {
    batch_ = loader_.next();
    if (!batch_) batch_ = loader_.next();  // of the next epoch
    if (!batch_) {
      throw InvalidArgument("the dataset has no samples, so there is nothing to measure");
    }
    if constexpr (kIsDevice) batch_->wait();
  }
  void give_back() {
    if constexpr (kIsDevice) batch_->release(nullptr);  // no stream used it, so any will do
    batch_.reset();
  }

  AnyLoader loader_;
  std::uint64_t batch_size_;
  std::size_t ahead_;  // batches that may be ready before they are asked for
  decltype(loader_.next()) batch_;
};

}  // namespace

void warm_up(const Dataset& dataset, const LoaderOptions& options, const MeasureOptions& measure) {
  LoaderOptions stored = options;
  stored.transform = {};
  (void)Consumer<Loader>(dataset, stored).measure_rate(measure);
}

LoadMeasurement measure_loading(const Dataset& dataset, const LoaderOptions& options,
                                const MeasureOptions& measure) {
  return Consumer<Loader>(dataset, options).measure_all(measure);
}

DeviceMeasurement measure_device_loading(const Dataset& dataset, const LoaderOptions& options,
                                         const DeviceOptions& device,
                                         const MeasureOptions& measure) {
  return Consumer<DeviceLoader>(dataset, options, device).measure_path(device.device_path, measure);
}

std::vector<DeviceMeasurement> measure_device_paths(const Dataset& dataset,
                                                    const LoaderOptions& options,
                                                    const DeviceOptions& device,
                                                    const MeasureOptions& measure) {
  DeviceOptions by_path = device;
  std::vector<DeviceMeasurement> results;
  for (const DevicePath path : {DevicePath::kStaged, DevicePath::kStrided, DevicePath::kGather}) {
    by_path.device_path = path;
    std::optional<Consumer<DeviceLoader>> consumer;
    try {
      consumer.emplace(dataset, options, by_path);
    } catch (const Error& error) {
      if (path == DevicePath::kStaged) throw;
      results.push_back({path, error.what(), {}, 0});
      continue;
    }
    results.push_back(consumer->measure_path(path, measure));
  }
  return results;
}

}  // namespace precache
