// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <new>
#include <string>
#include <type_traits>

/// What CUDA hands out, in objects that give it back. Their destructors ignore errors: these are
/// late news of something that failed before.
namespace precache::device {

/// "out of memory (cudaErrorMemoryAllocation)".
[[nodiscard]] std::string text_of(cudaError_t error);

/// Throws DeviceError, which names the call and the device, if a call did not succeed; the error is
/// then not left behind for the caller's next cudaGetLastError().
void check(cudaError_t error, const char* call, int device);

/// Throws Unsupported if there is no driver or no GPU, InvalidArgument if there is no such device;
/// DeviceError. The device has a context then, which is nobody's current one.
void check_device(int device);

/// Makes a device the calling thread's current one, and the one before again in the end.
///
/// cudaSetDevice() would not do: to set back a thread that never chose a device makes a context on
/// device 0, some hundred MiB of its memory. The driver's stack of contexts leaves no trace.
class CurrentDevice {
 public:
  /// Throws DeviceError.  REQUIRES: check_device().
  explicit CurrentDevice(int device);
  /// For destructors: goes on with the device that is current if nothing can be done.
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

/// Who waits for an event. A host that waits for one of a stream's spins, with a core of its own.
enum class EventUse { kHostWaits, kStreamsWait };

/// All throw DeviceError.  REQUIRES: `device` is the current one.
[[nodiscard]] Stream make_stream(int device);
[[nodiscard]] Event make_event(int device, EventUse use);
[[nodiscard]] DeviceMemory allocate_device(int device, std::size_t bytes);
[[nodiscard]] PinnedMemory allocate_pinned(int device, std::size_t bytes);

}  // namespace precache::device
