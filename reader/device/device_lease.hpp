// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

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
  virtual void wait_on(CUstream_st* stream) = 0;
  virtual void wait() = 0;
  /// The place is used again after what is on these streams now. Throws DeviceError.
  virtual void release(std::span<CUstream_st* const> streams) = 0;
};

/// Throws the Unsupported of a build without CUDA; only such a build has it.
[[noreturn]] void throw_without_cuda();

}  // namespace precache
