// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "precache/reader/dataset.hpp"
#include "precache/reader/device_loader.hpp"
#include "precache/reader/loader.hpp"

namespace precache {

/// How long measurements take. A batch that was begun is ended, so each has one at least.
struct MeasureOptions {
  double seconds = 3;                                                 // of each
  std::uint64_t batches = std::numeric_limits<std::uint64_t>::max();  // of each, at most
  /// How long a training step is busy with a batch. 0: waiting is not measured.
  double step_seconds = 0;
};

/// Batches that were taken as fast as they came.
struct LoadRate {
  std::uint64_t batches = 0;
  std::uint64_t images = 0;
  std::uint64_t bytes = 0;  // of the batches; to a device: that were copied for them
  double seconds = 0;
  [[nodiscard]] double images_per_second() const;
  [[nodiscard]] double bytes_per_second() const;
};

/// Batches that were each held for the time of a training step, before the next was asked for.
struct StepWait {
  std::uint64_t steps = 0;
  double seconds = 0;  // of all steps, with waiting
  double waited_seconds = 0;
  /// Which part of the time was spent waiting, 0 to 1.
  [[nodiscard]] double share() const;
};

struct LoadMeasurement {
  LoadRate rate;
  std::optional<StepWait> wait;  // if there is a step
};

/// Reads, for one measurement's time, what measurements read first, so that it lies in memory as
/// far as it fits. All functions here leave the shards' bytes to a Loader, throw what it throws,
/// take whole batches only (LastBatch::kPad), and no views, which would cost nothing until they are
/// read.
void warm_up(const Dataset& dataset, const LoaderOptions& options, const MeasureOptions& measure);

/// Measures a Loader with these options.
[[nodiscard]] LoadMeasurement measure_loading(const Dataset& dataset, const LoaderOptions& options,
                                              const MeasureOptions& measure);

/// A way to the device, and how fast it is.
struct DeviceMeasurement {
  DevicePath path = DevicePath::kStaged;
  /// Why this way cannot be taken, and nothing was measured; else empty.
  std::string refusal;
  LoadMeasurement loading;
  std::uint64_t bytes_registered = 0;
};

/// Measures a DeviceLoader with these options; a batch counts when it lies on the device. Throws
/// what that throws.
[[nodiscard]] DeviceMeasurement measure_device_loading(const Dataset& dataset,
                                                       const LoaderOptions& options,
                                                       const DeviceOptions& device,
                                                       const MeasureOptions& measure);

/// The same for staged, strided and gather, in this order, whatever `device.device_path` is. Only
/// of those that copy in place a loader that cannot be made is a refusal, as staged is always
/// possible.
[[nodiscard]] std::vector<DeviceMeasurement> measure_device_paths(const Dataset& dataset,
                                                                  const LoaderOptions& options,
                                                                  const DeviceOptions& device,
                                                                  const MeasureOptions& measure);

/// Bytes a second that cross from pinned memory to a device when nothing else is done: what no path
/// can exceed. Copies of 32 MiB count as batches. Throws as DeviceLoader's constructor does.
[[nodiscard]] double measure_link(int device, const MeasureOptions& measure);

}  // namespace precache
