// SPDX-License-Identifier: Apache-2.0
// Which device is current, by calls of the runtime and of the driver.
#include <cuda.h>

#include <cstring>

#include "state.hpp"

using namespace fake_cudart;

namespace {

/// A context is identified by its device.
CUcontext context_of(int device) {
  return reinterpret_cast<CUcontext>(static_cast<Address>(device) + 1);
}

int device_of(CUcontext context) { return static_cast<int>(address_of(context)) - 1; }

/// The driver's results have the same numbers as the runtime's errors.
CUresult as_driver(cudaError_t error) { return static_cast<CUresult>(error); }

CUresult retain(CUcontext* context, CUdevice device) {
  Call call("cuDevicePrimaryCtxRetain", Call::Kind::kChoosesDevice);
  if (call.refused()) return as_driver(call.result());
  if (!is_device(device)) return as_driver(call.result(cudaErrorInvalidDevice));
  state().contexts.insert(device);
  *context = context_of(device);
  return as_driver(call.result());
}

CUresult release(CUdevice device) {
  Call call("cuDevicePrimaryCtxRelease", Call::Kind::kRestoresDevice);
  if (call.refused()) return as_driver(call.result());
  return as_driver(call.result(is_device(device) ? cudaSuccess : cudaErrorInvalidDevice));
}

CUresult push(CUcontext context) {
  Call call("cuCtxPushCurrent", Call::Kind::kChoosesDevice);
  if (call.refused()) return as_driver(call.result());
  this_thread().pushed.push_back(device_of(context));
  return as_driver(call.result());
}

CUresult pop(CUcontext* context) {
  Call call("cuCtxPopCurrent", Call::Kind::kRestoresDevice);
  if (call.refused()) return as_driver(call.result());
  std::vector<int>& pushed = this_thread().pushed;
  if (pushed.empty()) {
    call.fault(FaultKind::kBadHandle, "no context was pushed", cudaErrorDeviceUninitialized);
    return as_driver(call.result());
  }
  *context = context_of(pushed.back());
  pushed.pop_back();
  return as_driver(call.result());
}

struct DriverCall {
  const char* name;
  void* function;
};
const DriverCall kDriverCalls[] = {
    {"cuDevicePrimaryCtxRetain", reinterpret_cast<void*>(retain)},
    {"cuDevicePrimaryCtxRelease", reinterpret_cast<void*>(release)},
    {"cuCtxPushCurrent", reinterpret_cast<void*>(push)},
    {"cuCtxPopCurrent", reinterpret_cast<void*>(pop)},
};

}  // namespace

extern "C" {

cudaError_t cudaGetDevice(int* device) {
  Call call("cudaGetDevice", Call::Kind::kChoosesDevice);
  if (call.refused()) return call.result();
  *device = call.device();
  return call.result();
}

cudaError_t cudaSetDevice(int device) {
  Call call("cudaSetDevice", Call::Kind::kChoosesDevice);
  if (call.refused()) return call.result();
  if (!is_device(device)) return call.result(cudaErrorInvalidDevice);
  this_thread().device = device;
  if (!this_thread().pushed.empty()) this_thread().pushed.back() = device;
  state().contexts.insert(device);
  return call.result();
}

cudaError_t cudaInitDevice(int device, unsigned, unsigned) {
  Call call("cudaInitDevice", Call::Kind::kWithoutContext);
  if (call.refused()) return call.result();
  if (!is_device(device)) return call.result(cudaErrorInvalidDevice);
  state().contexts.insert(device);
  return call.result();
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* found) {
  Call call("cudaGetDriverEntryPointByVersion", Call::Kind::kChoosesDevice);
  if (call.refused()) return call.result();
  *function = nullptr;
  *found = cudaDriverEntryPointSymbolNotFound;
  for (const DriverCall& entry : kDriverCalls) {
    if (std::strcmp(entry.name, name) != 0) continue;
    *function = entry.function;
    *found = cudaDriverEntryPointSuccess;
  }
  return call.result();
}

}  // extern "C"
