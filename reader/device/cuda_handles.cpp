// SPDX-License-Identifier: Apache-2.0
#include "reader/device/cuda_handles.hpp"

#include <fmt/format.h>

#include <string_view>

#include "precache/formats/error.hpp"

namespace precache::device {
namespace {

/// A hint for a driver that is missing or too old; CUDA has one error for both.
std::string driver_hint() {
  int version = 0;
  if (cudaDriverGetVersion(&version) != cudaSuccess) (void)cudaGetLastError();
  constexpr std::string_view kNeeded = "this build needs r580 or later (CUDA 13)";
  if (version == 0) return fmt::format("No NVIDIA driver is installed: {}.", kNeeded);
  return fmt::format("The driver is for CUDA {}.{}: {}.", version / 1000, version % 1000 / 10,
                     kNeeded);
}

std::string hint_for(cudaError_t error, std::string_view call) {
  if (error == cudaErrorInsufficientDriver) return driver_hint();
  if (error == cudaErrorInitializationError) {
    return "A process that was forked after CUDA was used cannot use CUDA: start it with spawn.";
  }
  if (error != cudaErrorMemoryAllocation) return {};
  if (call == "cudaHostAlloc") {
    return "Pinned memory holds `prefetch` + `device_batches` batches: reduce these or "
           "`batch_size`.";
  }
  return "The device holds `device_batches` batches and one stored batch: reduce `device_batches` "
         "or "
         "`batch_size`.";
}

/// The driver's results have the same numbers as the runtime's errors.
cudaError_t as_runtime(CUresult result) { return static_cast<cudaError_t>(result); }

/// Finds a function of libcuda, which this library does not link.
template <typename Function>
cudaError_t find_in_driver(const char* name, Function& function) {
  constexpr unsigned kVersion = 12000;  // whose signatures cuda.h has
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion(name, &found, kVersion, cudaEnableDefault, &result);
  if (error != cudaSuccess) {
    (void)cudaGetLastError();
    return error;
  }
  if (result != cudaDriverEntryPointSuccess) return cudaErrorSymbolNotFound;
  function = reinterpret_cast<Function>(found);
  return cudaSuccess;
}

}  // namespace

std::string text_of(cudaError_t error) {
  return fmt::format("{} ({})", cudaGetErrorString(error), cudaGetErrorName(error));
}

void check(cudaError_t error, const char* call, int device) {
  if (error == cudaSuccess) return;
  (void)cudaGetLastError();
  throw DeviceError(fmt::format("{} failed on device {}: {}", call, device, text_of(error)),
                    hint_for(error, call));
}

void check_device(int device) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess || count == 0) {
    (void)cudaGetLastError();
    const std::string hint = hint_for(error, "cudaGetDeviceCount");
    throw Unsupported(fmt::format("there is no GPU for the batches: {}",
                                  error == cudaSuccess ? "CUDA found no devices" : text_of(error)),
                      hint.empty() ? "Run nvidia-smi to see the GPUs; a Loader needs none." : hint);
  }
  if (device < 0 || device >= count) {
    throw InvalidArgument(
        fmt::format("`device` must be below {}, the number of GPUs, got {}", count, device));
  }
  check(cudaInitDevice(device, 0, 0), "cudaInitDevice", device);
}

CurrentDevice::CurrentDevice(int device) : device_(device) {
  const Result result = push();
  check(result.error, result.call, device);
}

CurrentDevice::CurrentDevice(int device, std::nothrow_t) noexcept : device_(device) {
  if (push().error != cudaSuccess) (void)cudaGetLastError();
}

CurrentDevice::Result CurrentDevice::push() noexcept {
  int before = 0;
  cudaError_t error = cudaGetDevice(&before);
  if (error != cudaSuccess) return {error, "cudaGetDevice"};
  if (before == device_) return {};
  decltype(&cuDevicePrimaryCtxRetain) retain = nullptr;
  decltype(&cuCtxPushCurrent) push_context = nullptr;
  // All functions first, so that a pushed context can be popped.
  for (const auto find : {find_in_driver("cuDevicePrimaryCtxRetain", retain),
                          find_in_driver("cuDevicePrimaryCtxRelease", release_),
                          find_in_driver("cuCtxPushCurrent", push_context),
                          find_in_driver("cuCtxPopCurrent", pop_)}) {
    if (find != cudaSuccess) return {find, "cudaGetDriverEntryPointByVersion"};
  }
  // NOLINTBEGIN(clang-analyzer-core.CallAndMessage): the loop above has set the functions
  CUcontext context = nullptr;
  error = as_runtime(retain(&context, device_));
  if (error != cudaSuccess) return {error, "cuDevicePrimaryCtxRetain"};
  error = as_runtime(push_context(context));
  pushed_ = error == cudaSuccess;
  if (!pushed_) (void)release_(device_);
  // NOLINTEND(clang-analyzer-core.CallAndMessage)
  return {error, "cuCtxPushCurrent"};
}

CurrentDevice::~CurrentDevice() {
  if (!pushed_) return;
  CUcontext context = nullptr;
  (void)pop_(&context);
  (void)release_(device_);  // the runtime still holds the context, so it stays
}

Stream make_stream(int device) {
  int least = 0;
  int greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange",
        device);
  cudaStream_t stream = nullptr;
  // Non-blocking: copies and the legacy default stream do not wait for each other. The priority
  // lets the kernel run before the blocks of a training step instead of after the whole step.
  check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest),
        "cudaStreamCreateWithPriority", device);
  return Stream(stream);
}

Event make_event(int device, EventUse use) {
  const unsigned flags = use == EventUse::kHostWaits ? cudaEventBlockingSync : cudaEventDefault;
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | flags),
        "cudaEventCreateWithFlags", device);
  return Event(event);
}

DeviceMemory allocate_device(int device, std::size_t bytes) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, bytes), "cudaMalloc", device);
  return DeviceMemory(static_cast<std::byte*>(memory));
}

PinnedMemory allocate_pinned(int device, std::size_t bytes) {
  void* memory = nullptr;
  // Portable memory costs nothing and works for all devices of the process.
  check(cudaHostAlloc(&memory, bytes, cudaHostAllocPortable), "cudaHostAlloc", device);
  return PinnedMemory(static_cast<std::byte*>(memory));
}

}  // namespace precache::device
