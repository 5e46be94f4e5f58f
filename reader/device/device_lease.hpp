// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include "precache/reader/device_loader.hpp"

namespace precache {

/// One place of a device's ring, lent to a batch and to the tensors that were exported from it.
///
/// The last of these to go returns the place after the work on the noted streams; without streams,
/// it waits until the device is idle. In a forked process, which cannot use CUDA, calls throw
/// InvalidArgument and the destructor does nothing.
class DeviceLease {
 public:
  DeviceLease() = default;
  DeviceLease(const DeviceLease&) = delete;
  DeviceLease& operator=(const DeviceLease&) = delete;
  virtual ~DeviceLease() = default;
  virtual void wait_on(CUstream_st* stream) = 0;
  virtual void wait() = 0;
  /// Returns the place; it is used again after the work that is now on the noted streams. Throws
  /// DeviceError.
  virtual void release() = 0;
  /// Remembers a stream that uses the place.
  void note(CUstream_st* stream) {
    if (std::ranges::find(streams_, stream) == streams_.end()) streams_.push_back(stream);
  }

 protected:
  std::vector<CUstream_st*> streams_;
};

/// Throws the Unsupported of builds without CUDA. Only these define it.
[[noreturn]] void throw_without_cuda();

}  // namespace precache
