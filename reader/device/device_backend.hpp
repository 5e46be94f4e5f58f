// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "precache/reader/device_loader.hpp"

namespace precache {

/// One lent place of a device's ring. The destructor of one that was not released waits until the
/// device has nothing to do. In a forked process calls throw InvalidArgument, and the destructor
/// does nothing: CUDA is not there.
class DeviceLease {
 public:
  DeviceLease() = default;
  DeviceLease(const DeviceLease&) = delete;
  DeviceLease& operator=(const DeviceLease&) = delete;
  virtual ~DeviceLease() = default;
  virtual void wait_on(void* stream) = 0;
  virtual void wait() = 0;
  /// The place is used again after what is on these streams now. Throws DeviceError.
  virtual void release(std::span<void* const> streams) = 0;
};

/// What a build with CUDA has behind a DeviceLoader.
class DeviceLoader::Impl {
 public:
  Impl() = default;
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  virtual ~Impl() = default;
  /// Whether the process was not forked since.
  [[nodiscard]] virtual bool is_of_this_process() const = 0;
  virtual std::optional<DeviceBatch> next() = 0;
  virtual bool wait_for(std::chrono::nanoseconds time) = 0;
  [[nodiscard]] virtual std::uint64_t batches_per_epoch() const = 0;
  [[nodiscard]] virtual std::uint64_t batches_left() const = 0;
  [[nodiscard]] virtual OrderState state() const = 0;
  virtual void resume(const OrderState& state) = 0;
  [[nodiscard]] virtual bool has_failed() const = 0;
  [[nodiscard]] virtual const TensorSpec& spec() const = 0;
  [[nodiscard]] virtual DeviceStats stats() const = 0;
  [[nodiscard]] virtual const std::vector<std::string>& warnings() const = 0;
};

/// Throws the Unsupported of a build without CUDA; only such a build has it.
[[noreturn]] void throw_without_cuda();

}  // namespace precache
