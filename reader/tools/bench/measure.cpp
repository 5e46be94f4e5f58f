// SPDX-License-Identifier: Apache-2.0
#include "precache/tools/measure.hpp"

#include <chrono>
#include <thread>
#include <utility>

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

/// The next batch of whatever epoch.
template <typename AnyLoader>
auto next_batch(AnyLoader& loader) {
  auto batch = loader.next();
  if (!batch) batch = loader.next();
  if (!batch) throw InvalidArgument("the dataset has no samples, so there is nothing to measure");
  return std::move(*batch);
}

/// Takes batches of a Loader, one at a time.
class HostConsumer {
 public:
  HostConsumer(const Dataset& dataset, const LoaderOptions& options)
      : loader_(dataset, for_measuring(options)), ahead_(options.prefetch) {}

  void take() { batch_ = next_batch(loader_); }
  void give_back() { batch_.reset(); }
  /// Batches that may be ready before they are asked for.
  [[nodiscard]] std::size_t ahead() const { return ahead_; }
  [[nodiscard]] std::uint64_t bytes_of(const LoadRate& rate) const {
    return rate.images * loader_.spec().size_bytes();
  }

 private:
  Loader loader_;
  std::size_t ahead_;
  std::optional<Batch> batch_;
};

/// Takes batches of a DeviceLoader, one at a time, and waits until they are there.
class DeviceConsumer {
 public:
  DeviceConsumer(const Dataset& dataset, const LoaderOptions& options, const DeviceOptions& device)
      : loader_(dataset, for_measuring(options), device),
        ahead_(options.prefetch + device.device_batches) {}

  void take() {
    batch_ = next_batch(loader_);
    batch_->wait();
  }
  void give_back() {
    batch_->release(nullptr);  // nothing used it, so any stream is right
    batch_.reset();
  }
  [[nodiscard]] std::size_t ahead() const { return ahead_; }
  /// All batches are equal, so those that are on their way do not matter.
  [[nodiscard]] std::uint64_t bytes_of(const LoadRate& rate) const {
    const DeviceStats stats = loader_.stats();
    return stats.bytes_copied / (stats.staged + stats.strided + stats.gathered) * rate.batches;
  }
  [[nodiscard]] DeviceStats stats() const { return loader_.stats(); }

 private:
  DeviceLoader loader_;
  std::size_t ahead_;
  std::optional<DeviceBatch> batch_;
};

template <typename Consumer>
LoadRate measure_rate(Consumer& consumer, std::uint64_t batch_size, const MeasureOptions& measure) {
  // What was ready before it was asked for would make the beginning look faster than the rest.
  for (std::size_t i = 0; i <= consumer.ahead(); ++i) {
    consumer.take();
    consumer.give_back();
  }
  LoadRate rate;
  const auto begin = Clock::now();
  do {
    consumer.take();
    consumer.give_back();
    ++rate.batches;
    rate.seconds = seconds_since(begin);
  } while (rate.seconds < measure.seconds && rate.batches < measure.batches);
  rate.images = rate.batches * batch_size;
  rate.bytes = consumer.bytes_of(rate);
  return rate;
}

template <typename Consumer>
StepWait measure_wait(Consumer& consumer, const MeasureOptions& measure) {
  StepWait wait;
  consumer.take();
  const auto begin = Clock::now();
  do {
    std::this_thread::sleep_for(std::chrono::duration<double>(measure.step_seconds));
    consumer.give_back();
    const auto asked = Clock::now();
    consumer.take();
    wait.waited_seconds += seconds_since(asked);
    ++wait.steps;
    wait.seconds = seconds_since(begin);
  } while (wait.seconds < measure.seconds && wait.steps < measure.batches);
  consumer.give_back();
  return wait;
}

template <typename Consumer>
LoadMeasurement measure_all(Consumer& consumer, const LoaderOptions& options,
                            const MeasureOptions& measure) {
  LoadMeasurement result;
  result.rate = measure_rate(consumer, options.batch_size, measure);
  if (measure.step_seconds > 0) result.wait = measure_wait(consumer, measure);
  return result;
}

DeviceMeasurement measure_path(DeviceConsumer& consumer, DevicePath path,
                               const LoaderOptions& options, const MeasureOptions& measure) {
  DeviceMeasurement result;
  result.path = path;
  result.loading = measure_all(consumer, options, measure);
  result.bytes_registered = consumer.stats().bytes_registered;
  return result;
}

}  // namespace

double LoadRate::images_per_second() const { return static_cast<double>(images) / seconds; }
double LoadRate::bytes_per_second() const { return static_cast<double>(bytes) / seconds; }
double StepWait::share() const { return waited_seconds / seconds; }

void warm_up(const Dataset& dataset, const LoaderOptions& options, const MeasureOptions& measure) {
  LoaderOptions stored = options;
  stored.transform = {};
  HostConsumer consumer(dataset, stored);
  (void)measure_rate(consumer, options.batch_size, measure);
}

LoadMeasurement measure_loading(const Dataset& dataset, const LoaderOptions& options,
                                const MeasureOptions& measure) {
  HostConsumer consumer(dataset, options);
  return measure_all(consumer, options, measure);
}

DeviceMeasurement measure_device_loading(const Dataset& dataset, const LoaderOptions& options,
                                         const DeviceOptions& device,
                                         const MeasureOptions& measure) {
  DeviceConsumer consumer(dataset, options, device);
  return measure_path(consumer, device.device_path, options, measure);
}

std::vector<DeviceMeasurement> measure_device_paths(const Dataset& dataset,
                                                    const LoaderOptions& options,
                                                    const DeviceOptions& device,
                                                    const MeasureOptions& measure) {
  DeviceOptions by_path = device;
  by_path.device_path = DevicePath::kStaged;
  std::vector<DeviceMeasurement> results{
      measure_device_loading(dataset, options, by_path, measure)};
  for (const DevicePath path : {DevicePath::kStrided, DevicePath::kGather}) {
    by_path.device_path = path;
    std::optional<DeviceConsumer> consumer;
    try {
      consumer.emplace(dataset, options, by_path);
    } catch (const Error& error) {
      results.push_back({path, error.what(), {}, 0});
      continue;
    }
    results.push_back(measure_path(*consumer, path, options, measure));
  }
  return results;
}

}  // namespace precache
