// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <new>
#include <string>
#include <type_traits>

/// Owners of CUDA resources. Their destructors ignore errors, which belong to earlier calls.
namespace precache::device {

/// "out of memory (cudaErrorMemoryAllocation)".
[[nodiscard]] std::string text_of(cudaError_t error);

/// Throws DeviceError, with the call and the device, if a call did not succeed, and clears the
/// error so that the caller's next cudaGetLastError() does not return it.
void check(cudaError_t error, const char* call, int device);

/// Throws Unsupported if there is no driver or no GPU, InvalidArgument if there is no such device,
/// DeviceError. Gives the device a context, but does not make it current.
void check_device(int device);

/// Makes a device the current one of the calling thread, and restores the previous one at the end.
///
/// Restoring with cudaSetDevice() would create a context on device 0, some hundred MiB, in a thread
/// that never chose a device. The driver's stack of contexts leaves no trace.
class CurrentDevice {
 public:
  /// Throws DeviceError.  REQUIRES: check_device().
  explicit CurrentDevice(int device);
  /// For destructors: keeps the current device if the call fails.
  CurrentDevice(int device, std::nothrow_t) noexcept;
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
  ~CurrentDevice();

 private:
  struct Result {
    cudaError_t error = cudaSuccess;
    const char* call = "";
  };
  Result push() noexcept;

  int device_;
  bool pushed_ = false;
  decltype(&cuCtxPopCurrent) pop_ = nullptr;
  decltype(&cuDevicePrimaryCtxRelease) release_ = nullptr;
};

template <auto kGiveBack>
struct GiveBack {
  template <typename Handle>
  void operator()(Handle* handle) const {
    if (kGiveBack(handle) != cudaSuccess) (void)cudaGetLastError();
  }
};

using Stream = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, GiveBack<cudaStreamDestroy>>;
using Event = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, GiveBack<cudaEventDestroy>>;
using DeviceMemory = std::unique_ptr<std::byte, GiveBack<cudaFree>>;
using PinnedMemory = std::unique_ptr<std::byte, GiveBack<cudaFreeHost>>;

/// Who waits for an event. A host that waits for a kStreamsWait event keeps a core busy.
enum class EventUse { kHostWaits, kStreamsWait };

/// All throw DeviceError.  REQUIRES: `device` is the current one.
[[nodiscard]] Stream make_stream(int device);
[[nodiscard]] Event make_event(int device, EventUse use);
[[nodiscard]] DeviceMemory allocate_device(int device, std::size_t bytes);
[[nodiscard]] PinnedMemory allocate_pinned(int device, std::size_t bytes);

}  // namespace precache::device
