// SPDX-License-Identifier: Apache-2.0
// Devices, versions and errors.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "state.hpp"

using namespace fake_cudart;

int fake_cudart::attribute_of(cudaDeviceAttr attribute) {
  const auto& set = state().settings.attributes;
  if (const auto found = set.find(attribute); found != set.end()) return found->second;
  switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor:
      return 9;
    case cudaDevAttrMultiProcessorCount:
      return 4;
    case cudaDevAttrWarpSize:
      return 32;
    case cudaDevAttrMaxThreadsPerBlock:
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY:
      return 1024;
    case cudaDevAttrMaxBlockDimZ:
      return 64;
    case cudaDevAttrMaxGridDimX:
      return 0x7fffffff;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ:
      return 65535;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      return 48 << 10;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      return 2048;
    case cudaDevAttrMaxPitch:
      return 0x7fffffff;
    case cudaDevAttrAsyncEngineCount:
      return 2;
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrHostRegisterSupported:
    case cudaDevAttrCanUseHostPointerForRegisteredMem:
      return 1;
    default:
      return 0;
  }
}

namespace {

struct ErrorText {
  cudaError_t error;
  const char* name;
  const char* text;
};

constexpr ErrorText kErrors[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration",
     "invalid configuration argument"},
    {cudaErrorInvalidPitchValue, "cudaErrorInvalidPitchValue", "invalid pitch argument"},
    {cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection",
     "invalid copy direction for memcpy"},
    {cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorCallRequiresNewerDriver, "cudaErrorCallRequiresNewerDriver",
     "API call is not supported in the installed CUDA driver"},
    {cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {cudaErrorNoKernelImageForDevice, "cudaErrorNoKernelImageForDevice",
     "no kernel image is available for execution on the device"},
    {cudaErrorUnsupportedPtxVersion, "cudaErrorUnsupportedPtxVersion",
     "the provided PTX was compiled with an unsupported toolchain."},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress",
     "an illegal memory access was encountered"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorHostMemoryAlreadyRegistered, "cudaErrorHostMemoryAlreadyRegistered",
     "part or all of the requested memory range is already mapped"},
    {cudaErrorHostMemoryNotRegistered, "cudaErrorHostMemoryNotRegistered",
     "pointer does not correspond to a registered memory region"},
    {cudaErrorNotPermitted, "cudaErrorNotPermitted", "operation not permitted"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
};

const ErrorText* find_error(cudaError_t error) {
  for (const ErrorText& entry : kErrors)
    if (entry.error == error) return &entry;
  return nullptr;
}

}  // namespace

bool fake_cudart::is_device(int device) {
  return device >= 0 && device < state().settings.device_count;
}

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  Call call("cudaGetDeviceCount", Call::Kind::kWithoutContext);
  *count = 0;
  if (call.refused()) return call.result();
  *count = state().settings.device_count;
  return call.result();
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  Call call("cudaDeviceGetAttribute", Call::Kind::kWithoutContext);
  if (call.refused()) return call.result();
  if (!is_device(device)) return call.result(cudaErrorInvalidDevice);
  *value = attribute_of(attribute);
  return call.result();
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  Call call("cudaGetDeviceProperties", Call::Kind::kWithoutContext);
  if (call.refused()) return call.result();
  if (!is_device(device)) return call.result(cudaErrorInvalidDevice);
  std::memset(properties, 0, sizeof *properties);
  std::snprintf(properties->name, sizeof properties->name, "Fake GPU %d", device);
  properties->totalGlobalMem = std::min(state().settings.device_memory, std::size_t{64} << 30);
  properties->major = attribute_of(cudaDevAttrComputeCapabilityMajor);
  properties->minor = attribute_of(cudaDevAttrComputeCapabilityMinor);
  properties->multiProcessorCount = attribute_of(cudaDevAttrMultiProcessorCount);
  properties->warpSize = attribute_of(cudaDevAttrWarpSize);
  properties->maxThreadsPerBlock = attribute_of(cudaDevAttrMaxThreadsPerBlock);
  properties->maxThreadsPerMultiProcessor = attribute_of(cudaDevAttrMaxThreadsPerMultiProcessor);
  properties->sharedMemPerBlock =
      static_cast<std::size_t>(attribute_of(cudaDevAttrMaxSharedMemoryPerBlock));
  properties->memPitch = static_cast<std::size_t>(attribute_of(cudaDevAttrMaxPitch));
  properties->asyncEngineCount = attribute_of(cudaDevAttrAsyncEngineCount);
  properties->unifiedAddressing = attribute_of(cudaDevAttrUnifiedAddressing);
  properties->canMapHostMemory = attribute_of(cudaDevAttrCanMapHostMemory);
  properties->hostRegisterSupported = attribute_of(cudaDevAttrHostRegisterSupported);
  properties->hostRegisterReadOnlySupported =
      attribute_of(cudaDevAttrHostRegisterReadOnlySupported);
  return call.result();
}

cudaError_t cudaDriverGetVersion(int* version) {
  Call call("cudaDriverGetVersion", Call::Kind::kWithoutDevice);
  if (call.refused()) return call.result();
  *version = state().settings.driver_version;
  return call.result();
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  Call call("cudaRuntimeGetVersion", Call::Kind::kWithoutDevice);
  if (call.refused()) return call.result();
  *version = CUDART_VERSION;
  return call.result();
}

const char* cudaGetErrorName(cudaError_t error) {
  const ErrorText* entry = find_error(error);
  return entry != nullptr ? entry->name : "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t error) {
  const ErrorText* entry = find_error(error);
  return entry != nullptr ? entry->text : "unrecognized error code";
}

cudaError_t cudaGetLastError() {
  const Lock lock(state().mutex);
  const cudaError_t error = this_thread().last_error;
  this_thread().last_error = cudaSuccess;
  return error;
}

cudaError_t cudaPeekAtLastError() {
  const Lock lock(state().mutex);
  return this_thread().last_error;
}

}  // extern "C"
