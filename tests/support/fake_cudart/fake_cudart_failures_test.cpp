// SPDX-License-Identifier: Apache-2.0
// Tests of injected failures and of machine settings.
#include <thread>

#include "tests/support/fake_cudart/testing.hpp"

using namespace fake_cudart;

TEST_CASE("fake cudart: an injected failure happens", "[device]") {
  const Fresh fresh;
  void* memory = nullptr;
  SECTION("the second of its name, once") {
    CHECK(cudaMalloc(&memory, 10) == cudaSuccess);
    fail_call("cudaMalloc", 2, cudaErrorMemoryAllocation);
    CHECK(cudaMalloc(&memory, 10) == cudaSuccess);
    cudaStream_t stream = nullptr;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    CHECK(cudaMalloc(&memory, 10) == cudaErrorMemoryAllocation);
    CHECK(cudaMalloc(&memory, 10) == cudaSuccess);
    CHECK(leaks().size() == 4);
    CHECK(calls() == std::map<std::string, std::uint64_t>{{"cudaMalloc", 4},
                                                          {"cudaStreamCreateWithFlags", 1}});
    CHECK(call_count() == 5);
  }
  SECTION("the second of any, and all after it") {
    fail_any_call(2, cudaErrorLaunchFailure, Repeat::kForever);
    int device = 0;
    CHECK(cudaGetDevice(&device) == cudaSuccess);
    CHECK(cudaMalloc(&memory, 10) == cudaErrorLaunchFailure);
    CHECK(cudaGetDevice(&device) == cudaErrorLaunchFailure);
    CHECK(leaks().empty());
  }
  SECTION("the last error belongs to the thread, and is read once") {
    fail_call("cudaMalloc", 1, cudaErrorMemoryAllocation);
    CHECK(cudaMalloc(&memory, 10) == cudaErrorMemoryAllocation);
    cudaError_t of_other = cudaErrorUnknown;
    std::thread([&] { of_other = cudaGetLastError(); }).join();
    CHECK(of_other == cudaSuccess);
    CHECK(cudaPeekAtLastError() == cudaErrorMemoryAllocation);
    CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
    CHECK(cudaGetLastError() == cudaSuccess);
    CHECK(std::string(cudaGetErrorName(cudaErrorMemoryAllocation)) == "cudaErrorMemoryAllocation");
    CHECK(std::string(cudaGetErrorString(cudaErrorMemoryAllocation)) == "out of memory");
  }
  CHECK(faults().empty());
}

TEST_CASE("fake cudart: a call that frees or waits does so even when it fails", "[device]") {
  const Fresh fresh;
  const Rig rig;
  for (const char* name : {"cudaStreamSynchronize", "cudaStreamDestroy", "cudaEventDestroy",
                           "cudaFree", "cudaFreeHost"})
    fail_call(name, 1, cudaErrorLaunchFailure);
  CHECK(rig.upload(rig.a) == cudaSuccess);
  CHECK(cudaStreamSynchronize(rig.a) == cudaErrorLaunchFailure);
  CHECK(cudaStreamDestroy(rig.a) == cudaErrorLaunchFailure);
  CHECK(cudaEventDestroy(rig.event) == cudaErrorLaunchFailure);
  CHECK(cudaFree(rig.device) == cudaErrorLaunchFailure);
  CHECK(cudaFreeHost(rig.pinned) == cudaErrorLaunchFailure);
  CHECK(cudaStreamDestroy(rig.b) == cudaSuccess);
  CHECK(report() == "");
}

TEST_CASE("fake cudart: an operation that fails is not done", "[device]") {
  const Fresh fresh;
  const Rig rig;
  fail_call("cudaMemsetAsync", 1, cudaErrorLaunchFailure);
  fail_call("cudaStreamWaitEvent", 1, cudaErrorLaunchFailure);
  CHECK(cudaMemsetAsync(rig.device, 1, 1, rig.a) == cudaErrorLaunchFailure);
  unsigned char byte = 0;
  CHECK(cudaMemcpy(&byte, rig.device, 1, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(byte == 0xA5);
  CHECK(cudaMemsetAsync(rig.device, 1, 1, rig.a) == cudaSuccess);
  CHECK(cudaEventRecord(rig.event, rig.a) == cudaSuccess);
  CHECK(cudaStreamWaitEvent(rig.b, rig.event, 0) == cudaErrorLaunchFailure);
  CHECK(faults().empty());
  CHECK(cudaMemsetAsync(rig.device, 2, 1, rig.b) == cudaSuccess);  // continues as if it had waited
  CHECK(fault_names() == Names{"race"});
}

TEST_CASE("fake cudart: a test sets the machine", "[device]") {
  const Fresh fresh;
  int value = -1;
  void* memory = nullptr;
  SECTION("no device") {
    set_device_count(0);
    CHECK(cudaGetDeviceCount(&value) == cudaErrorNoDevice);
    CHECK(value == 0);
    CHECK(cudaMalloc(&memory, 1) == cudaErrorNoDevice);
    CHECK(cudaRuntimeGetVersion(&value) == cudaSuccess);
    CHECK(value == CUDART_VERSION);
  }
  SECTION("no driver") {
    set_driver_version(0);
    CHECK(cudaGetDeviceCount(&value) == cudaErrorInsufficientDriver);
    CHECK(cudaDriverGetVersion(&value) == cudaSuccess);
    CHECK(value == 0);
  }
  SECTION("an old driver has no batch copies") {
    const Rig rig;
    set_driver_version(12060);
    void* to = rig.device;
    const void* from = rig.pinned;
    std::size_t size = 1;
    std::size_t first = 0;
    cudaMemcpyAttributes attributes{};
    attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    CHECK(cudaMemcpyBatchAsync(&to, &from, &size, 1, &attributes, &first, 1, rig.a) ==
          cudaErrorCallRequiresNewerDriver);
  }
  SECTION("attributes and properties") {
    set_device_count(3);
    set_attribute(cudaDevAttrComputeCapabilityMajor, 12);
    CHECK(cudaGetDeviceCount(&value) == cudaSuccess);
    CHECK(value == 3);
    CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, 2) == cudaSuccess);
    CHECK(value == 12);
    CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrHostRegisterReadOnlySupported, 0) ==
          cudaSuccess);
    CHECK(value == 0);
    CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 3) == cudaErrorInvalidDevice);
    cudaDeviceProp properties{};
    CHECK(cudaGetDeviceProperties(&properties, 1) == cudaSuccess);
    CHECK(properties.major == 12);
    CHECK(std::string(properties.name) == "Fake GPU 1");
  }
  SECTION("little memory, each device with its own") {
    set_device_count(2);
    set_device_memory(1000);
    CHECK(cudaMalloc(&memory, 600) == cudaSuccess);
    CHECK(cudaMalloc(&memory, 600) == cudaErrorMemoryAllocation);
    CHECK(cudaSetDevice(1) == cudaSuccess);
    CHECK(cudaMalloc(&memory, 600) == cudaSuccess);
  }
  CHECK(faults().empty());
}

TEST_CASE("fake cudart: only events with timing have times", "[device]") {
  const Fresh fresh;
  cudaEvent_t start = nullptr;
  cudaEvent_t end = nullptr;
  REQUIRE(cudaEventCreate(&start) == cudaSuccess);
  REQUIRE(cudaEventCreate(&end) == cudaSuccess);
  const Rig rig;
  float milliseconds = -1;
  CHECK(cudaEventRecord(start, rig.a) == cudaSuccess);
  hold(rig.b);
  CHECK(cudaEventRecord(end, rig.b) == cudaSuccess);
  CHECK(cudaEventElapsedTime(&milliseconds, start, end) == cudaErrorNotReady);
  CHECK(cudaEventSynchronize(start) == cudaSuccess);
  let_go(rig.b);
  CHECK(cudaEventSynchronize(end) == cudaSuccess);
  CHECK(cudaEventElapsedTime(&milliseconds, start, end) == cudaSuccess);
  CHECK(milliseconds >= 0.0F);
  CHECK(faults().empty());
  CHECK(cudaEventElapsedTime(&milliseconds, start, rig.event) == cudaErrorInvalidResourceHandle);
  CHECK(fault_names() == Names{"bad argument"});
}
