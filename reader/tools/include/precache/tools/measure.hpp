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

/// The length of a measurement. It ends with a whole batch, so it has at least one.
struct MeasureOptions {
  double seconds = 3;                                                 // of each measurement
  std::uint64_t batches = std::numeric_limits<std::uint64_t>::max();  // of each, at most
  /// The duration of a training step; with 0, waiting is not measured.
  double step_seconds = 0;
};

/// The rate of batches that are taken as fast as possible.
struct LoadRate {
  std::uint64_t batches = 0;
  std::uint64_t images = 0;
  std::uint64_t bytes = 0;  // of the batches; for a device, those copied
  double seconds = 0;
  [[nodiscard]] double images_per_second() const { return static_cast<double>(images) / seconds; }
  [[nodiscard]] double bytes_per_second() const { return static_cast<double>(bytes) / seconds; }
};

/// The waits of a consumer that holds each batch for a training step and then asks for the next.
struct StepWait {
  std::uint64_t steps = 0;
  double seconds = 0;  // of all steps, including waits
  double waited_seconds = 0;
  /// The part of the time that was spent waiting, 0 to 1.
  [[nodiscard]] double share() const { return waited_seconds / seconds; }
};

struct LoadMeasurement {
  LoadRate rate;
  std::optional<StepWait> wait;  // if step_seconds is not 0
};

/// Reads for the time of one measurement, so that the data that measurements read first is cached.
///
/// All functions here read with a Loader and throw its exceptions. They take only whole batches
/// (LastBatch::kPad), and no views, which would cost nothing until they are read.
void warm_up(const Dataset& dataset, const LoaderOptions& options, const MeasureOptions& measure);

/// Measures a Loader with these options.
[[nodiscard]] LoadMeasurement measure_loading(const Dataset& dataset, const LoaderOptions& options,
                                              const MeasureOptions& measure);

/// The speed of one path to the device.
struct DeviceMeasurement {
  DevicePath path = DevicePath::kStaged;
  /// The reason why this path is not possible; empty if it was measured.
  std::string refusal;
  LoadMeasurement loading;
  std::uint64_t bytes_registered = 0;
};

/// Measures a DeviceLoader with these options; a batch counts once it is on the device. Throws the
/// exceptions of DeviceLoader.
[[nodiscard]] DeviceMeasurement measure_device_loading(const Dataset& dataset,
                                                       const LoaderOptions& options,
                                                       const DeviceOptions& device,
                                                       const MeasureOptions& measure);

/// The same for staged, strided and gather, in this order; ignores `device.device_path`. If strided
/// or gather are not possible, their result has a refusal; staged is always possible.
[[nodiscard]] std::vector<DeviceMeasurement> measure_device_paths(const Dataset& dataset,
                                                                  const LoaderOptions& options,
                                                                  const DeviceOptions& device,
                                                                  const MeasureOptions& measure);

/// Bytes per second from pinned memory to an idle device, the limit of every path. Copies of 32 MiB
/// count as batches. Throws the exceptions of DeviceLoader's constructor.
[[nodiscard]] double measure_link(int device, const MeasureOptions& measure);

}  // namespace precache
