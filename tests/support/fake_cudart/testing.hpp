// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/fake_cudart/fake_cudart.hpp"

namespace fake_cudart {

/// A new machine for the duration of a test.
struct Fresh {
  Fresh() { reset(); }
  ~Fresh() { reset(); }
  Fresh(const Fresh&) = delete;
  Fresh& operator=(const Fresh&) = delete;
};

/// The kinds of all faults, by name.
inline std::vector<std::string> fault_names() {
  std::vector<std::string> names;
  for (const Fault& fault : faults()) names.emplace_back(name_of(fault.kind));
  return names;
}

using Names = std::vector<std::string>;

/// Streams, events and memory of a device for a test. The destructor frees them.
struct Rig {
  cudaStream_t a = new_stream();
  cudaStream_t b = new_stream();
  cudaEvent_t event = new_event();
  std::size_t size = 4096;
  unsigned char* device = new_device(size);
  unsigned char* pinned = new_pinned(size);

  static cudaStream_t new_stream() {
    cudaStream_t stream = nullptr;
    REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
    return stream;
  }
  static cudaEvent_t new_event() {
    cudaEvent_t event = nullptr;
    REQUIRE(cudaEventCreateWithFlags(&event, cudaEventDisableTiming) == cudaSuccess);
    return event;
  }
  static unsigned char* new_device(std::size_t size) {
    void* memory = nullptr;
    REQUIRE(cudaMalloc(&memory, size) == cudaSuccess);
    return static_cast<unsigned char*>(memory);
  }
  static unsigned char* new_pinned(std::size_t size) {
    void* memory = nullptr;
    REQUIRE(cudaHostAlloc(&memory, size, cudaHostAllocDefault) == cudaSuccess);
    return static_cast<unsigned char*>(memory);
  }
  cudaError_t upload(cudaStream_t stream) const {
    return cudaMemcpyAsync(device, pinned, size, cudaMemcpyHostToDevice, stream);
  }
  cudaError_t download(cudaStream_t stream) const {
    return cudaMemcpyAsync(pinned, device, size, cudaMemcpyDeviceToHost, stream);
  }
  /// Orders the earlier work of stream `first` before later work of stream `second`.
  void order(cudaStream_t first, cudaStream_t second) const {
    REQUIRE(cudaEventRecord(event, first) == cudaSuccess);
    REQUIRE(cudaStreamWaitEvent(second, event, 0) == cudaSuccess);
  }
  void give_back() const {
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    CHECK(cudaStreamDestroy(a) == cudaSuccess);
    CHECK(cudaStreamDestroy(b) == cudaSuccess);
    CHECK(cudaEventDestroy(event) == cudaSuccess);
    CHECK(cudaFree(device) == cudaSuccess);
    CHECK(cudaFreeHost(pinned) == cudaSuccess);
  }
};

}  // namespace fake_cudart
