// SPDX-License-Identifier: Apache-2.0
// The fake CUDA runtime finds each misuse that involves a single operation.
#include <sys/mman.h>

#include <array>
#include <cstdint>
#include <stdexcept>

#include "tests/support/fake_cudart/probe_kernels.hpp"
#include "tests/support/fake_cudart/testing.hpp"

using namespace fake_cudart;
using precache::test::contains;

namespace {

cudaError_t batch(void* to, const void* from, std::size_t size, cudaStream_t stream,
                  cudaMemcpySrcAccessOrder order = cudaMemcpySrcAccessOrderStream) {
  cudaMemcpyAttributes attributes{};
  attributes.srcAccessOrder = order;
  std::size_t first = 0;
  return cudaMemcpyBatchAsync(&to, &from, &size, 1, &attributes, &first, 1, stream);
}

void add_body(dim3, dim3, const ProbeJob& job, const int&) {
  (void)read_view(job.from, static_cast<std::size_t>(job.size));
  (void)write_view(job.to, static_cast<std::size_t>(job.size));
}

}  // namespace

TEST_CASE("fake cudart: a copy must stay within memory that is alive", "[device]") {
  const Fresh fresh;
  const Rig rig;
  const auto kind = cudaMemcpyHostToDevice;
  SECTION("destination one byte too long") {
    CHECK(cudaMemcpyAsync(rig.device + 1, rig.pinned, rig.size, kind, rig.a) ==
          cudaErrorInvalidValue);
    CHECK(fault_names() == Names{"out of bounds"});
    CHECK_THAT(faults()[0].text,
               contains("destination runs 1 bytes past the end of device memory"));
  }
  SECTION("source one byte too long") {
    CHECK(cudaMemcpyAsync(rig.device, rig.pinned + 1, rig.size, kind, rig.a) ==
          cudaErrorInvalidValue);
    CHECK(fault_names() == Names{"out of bounds"});
  }
  SECTION("between two allocations") {
    CHECK(cudaMemcpyAsync(rig.device + rig.size, rig.pinned, 1, kind, rig.a) ==
          cudaErrorInvalidValue);
    CHECK(fault_names() == Names{"out of bounds"});
  }
  SECTION("memset too long") {
    CHECK(cudaMemsetAsync(rig.device, 0, rig.size + 1, rig.a) == cudaErrorInvalidValue);
    CHECK(fault_names() == Names{"out of bounds"});
  }
  SECTION("freed destination") {
    CHECK(cudaFree(rig.device) == cudaSuccess);
    CHECK(rig.upload(rig.a) == cudaErrorInvalidValue);
    CHECK(fault_names() == Names{"freed memory"});
  }
  SECTION("freed source") {
    CHECK(cudaFreeHost(rig.pinned) == cudaSuccess);
    CHECK(rig.upload(rig.a) == cudaErrorInvalidValue);
    CHECK(fault_names() == Names{"freed memory"});
    host_access(rig.pinned, 1, false);
    CHECK(fault_names() == Names{"freed memory", "freed memory"});
  }
  SECTION("null") {
    CHECK(cudaMemcpyAsync(nullptr, rig.pinned, 1, kind, rig.a) == cudaErrorInvalidValue);
    CHECK(fault_names() == Names{"bad pointer"});
  }
  SECTION("the other way round") {
    CHECK(cudaMemcpyAsync(rig.pinned, rig.device, 1, kind, rig.a) ==
          cudaErrorInvalidMemcpyDirection);
    CHECK(fault_names() == Names{"bad pointer"});
  }
  SECTION("device memory touched by the host") {
    host_access(rig.device, 1, false);
    CHECK(fault_names() == Names{"host touches device memory"});
  }
}

TEST_CASE("fake cudart: rows and batches come only from pinned memory", "[device]") {
  const Fresh fresh;
  const Rig rig;
  std::vector<unsigned char> pageable(rig.size);
  const auto rows = [&](const void* from, std::size_t to_pitch, std::size_t from_pitch) {
    return cudaMemcpy2DAsync(rig.device, to_pitch, from, from_pitch, 16, 256,
                             cudaMemcpyHostToDevice, rig.a);
  };
  SECTION("rows that fit exactly") {
    CHECK(rows(rig.pinned, 16, 16) == cudaSuccess);
    CHECK(fault_names().empty());
  }
  SECTION("rows of pageable memory") {
    CHECK(rows(pageable.data(), 16, 16) == cudaErrorInvalidValue);
    CHECK(fault_names() == Names{"unregistered memory"});
  }
  SECTION("a source pitch below the width") {
    CHECK(rows(rig.pinned, 16, 15) == cudaErrorInvalidPitchValue);
    CHECK(fault_names() == Names{"bad pitch"});
  }
  SECTION("a destination pitch below the width") {
    CHECK(rows(rig.pinned, 15, 16) == cudaErrorInvalidPitchValue);
    CHECK(fault_names() == Names{"bad pitch"});
  }
  SECTION("a source pitch that runs out of the memory") {
    CHECK(rows(rig.pinned, 16, 17) == cudaErrorInvalidValue);
    CHECK(fault_names() == Names{"out of bounds"});
  }
  SECTION("a destination pitch that runs out of the memory") {
    CHECK(rows(rig.pinned, 17, 16) == cudaErrorInvalidValue);
    CHECK(fault_names() == Names{"out of bounds"});
  }
  SECTION("a batch of pageable memory") {
    CHECK(batch(rig.device, pageable.data(), 16, rig.a) == cudaErrorInvalidValue);
    CHECK(fault_names() == Names{"unregistered memory"});
  }
  SECTION("a batch from a range that is no longer registered") {
    REQUIRE(cudaHostRegister(pageable.data(), rig.size, 0) == cudaSuccess);
    CHECK(batch(rig.device, pageable.data(), 16, rig.a) == cudaSuccess);
    CHECK(cudaStreamSynchronize(rig.a) == cudaSuccess);
    CHECK(cudaHostUnregister(pageable.data()) == cudaSuccess);
    CHECK(fault_names().empty());
    CHECK(batch(rig.device, pageable.data(), 16, rig.a) == cudaErrorInvalidValue);
    CHECK(fault_names() == Names{"unregistered memory"});
  }
  SECTION("a batch in the legacy stream") {
    CHECK(batch(rig.device, rig.pinned, 16, nullptr) == cudaErrorInvalidValue);
    CHECK(fault_names() == Names{"legacy stream"});
  }
  SECTION("a batch without a source access order") {
    CHECK(batch(rig.device, rig.pinned, 16, rig.a, cudaMemcpySrcAccessOrderInvalid) ==
          cudaErrorInvalidValue);
    CHECK(fault_names() == Names{"bad argument"});
  }
  SECTION("a batch whose copies write one place") {
    std::array<void*, 2> to = {rig.device, rig.device + 15};
    std::array<const void*, 2> from = {rig.pinned, rig.pinned};
    std::array<std::size_t, 2> sizes = {16, 16};
    cudaMemcpyAttributes attributes{};
    attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    std::size_t first = 0;
    CHECK(cudaMemcpyBatchAsync(to.data(), from.data(), sizes.data(), 2, &attributes, &first, 1,
                               rig.a) == cudaSuccess);
    CHECK(fault_names() == Names{"race"});
  }
}

TEST_CASE("fake cudart: registering has CUDA's limits", "[device]") {
  const Fresh fresh;
  const std::size_t size = 3 * 4096;
  auto* const writable = static_cast<unsigned char*>(
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  void* const read_only = mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  SECTION("overlap") {
    CHECK(cudaHostRegister(writable + 4096, 4096, 0) == cudaSuccess);
    CHECK(cudaHostRegister(writable, 4097, 0) == cudaErrorHostMemoryAlreadyRegistered);
    CHECK(cudaHostRegister(writable + 8191, 10, 0) == cudaErrorHostMemoryAlreadyRegistered);
    CHECK(cudaHostRegister(writable, 4096, 0) == cudaSuccess);
    CHECK(cudaHostRegister(writable + 8192, 4096, 0) == cudaSuccess);
    CHECK(leaks().size() == 3);
  }
  SECTION("limit in bytes") {
    set_register_limit(8192);
    CHECK(cudaHostRegister(writable, 8193, 0) == cudaErrorMemoryAllocation);
    CHECK(cudaHostRegister(writable, 4096, 0) == cudaSuccess);
    CHECK(cudaHostRegister(writable + 4096, 4097, 0) == cudaErrorMemoryAllocation);
    CHECK(cudaHostUnregister(writable) == cudaSuccess);
    CHECK(cudaHostRegister(writable + 4096, 4097, 0) == cudaSuccess);
  }
  SECTION("read-only memory") {
    CHECK(cudaHostRegister(read_only, size, 0) == cudaErrorInvalidValue);
    CHECK(cudaHostRegister(read_only, size, cudaHostRegisterReadOnly) == cudaErrorNotSupported);
    set_attribute(cudaDevAttrHostRegisterReadOnlySupported, 1);
    CHECK(cudaHostRegister(read_only, size, 0) == cudaErrorInvalidValue);
    CHECK(cudaHostRegister(read_only, size, cudaHostRegisterReadOnly) == cudaSuccess);
  }
  SECTION("no registering at all") {
    set_attribute(cudaDevAttrHostRegisterSupported, 0);
    CHECK(cudaHostRegister(writable, size, 0) == cudaErrorNotSupported);
  }
  SECTION("a hole in the range") {
    munmap(writable + 4096, 4096);
    CHECK(cudaHostRegister(writable, size, 0) == cudaErrorInvalidValue);
  }
  CHECK(fault_names().empty());
  SECTION("unmapped while registered") {
    const Rig rig;
    CHECK(cudaHostRegister(writable, size, 0) == cudaSuccess);
    hold(rig.a);
    CHECK(batch(rig.device, writable, 16, rig.a) == cudaSuccess);
    munmap(writable, size);
    let_go(rig.a);
    CHECK(cudaStreamSynchronize(rig.a) == cudaSuccess);
    CHECK(fault_names() == Names{"freed memory"});
    CHECK(cudaHostUnregister(writable) == cudaSuccess);
    CHECK(fault_names() == Names{"freed memory", "freed memory"});
  }
  SECTION("written although registered as read-only") {
    const Rig rig;
    set_attribute(cudaDevAttrHostRegisterReadOnlySupported, 1);
    CHECK(cudaHostRegister(writable, size, cudaHostRegisterReadOnly) == cudaSuccess);
    CHECK(cudaMemcpyAsync(writable, rig.device, 1, cudaMemcpyDeviceToHost, rig.a) ==
          cudaErrorInvalidValue);
    register_kernel<ProbeJob, int>("probe_add", add_body);
    launch_probe_add({rig.device, writable, 1, 0}, 0, dim3(1), dim3(1), rig.a);
    CHECK(cudaStreamSynchronize(rig.a) == cudaSuccess);
    CHECK(fault_names() == Names(2, "bad pointer"));
  }
  SECTION("unregistered twice, or never registered") {
    CHECK(cudaHostRegister(writable, size, 0) == cudaSuccess);
    CHECK(cudaHostUnregister(writable + 1) != cudaSuccess);
    CHECK(cudaHostUnregister(writable) == cudaSuccess);
    CHECK(cudaHostUnregister(writable) == cudaErrorHostMemoryNotRegistered);
    CHECK(fault_names() == Names{"bad pointer", "double free"});
  }
  reset();
  munmap(writable, size);
  munmap(read_only, size);
}

TEST_CASE("fake cudart: resources are freed once, and not used afterwards", "[device]") {
  const Fresh fresh;
  const Rig rig;
  SECTION("twice") {
    rig.give_back();
    CHECK(fault_names().empty());
    CHECK(cudaFree(rig.device) == cudaErrorInvalidValue);
    CHECK(cudaFreeHost(rig.pinned) == cudaErrorInvalidValue);
    CHECK(cudaStreamDestroy(rig.a) == cudaErrorInvalidResourceHandle);
    CHECK(cudaEventDestroy(rig.event) == cudaErrorInvalidResourceHandle);
    CHECK(fault_names() == Names(4, "double free"));
    CHECK(leaks().empty());
  }
  SECTION("destroyed or never made") {
    CHECK(cudaStreamDestroy(rig.b) == cudaSuccess);
    CHECK(cudaEventDestroy(rig.event) == cudaSuccess);
    CHECK(rig.upload(rig.b) == cudaErrorInvalidResourceHandle);
    CHECK(cudaEventRecord(rig.event, rig.a) == cudaErrorInvalidResourceHandle);
    CHECK(cudaStreamWaitEvent(rig.a, rig.event, 0) == cudaErrorInvalidResourceHandle);
    int unrelated = 0;
    CHECK(cudaStreamSynchronize(reinterpret_cast<cudaStream_t>(&unrelated)) ==
          cudaErrorInvalidResourceHandle);
    CHECK(fault_names() == Names(4, "bad handle"));
  }
  SECTION("by the wrong call") {
    CHECK(cudaFree(rig.pinned) == cudaErrorInvalidValue);
    CHECK(cudaFree(rig.device + 1) == cudaErrorInvalidValue);
    CHECK(cudaFreeHost(rig.device) == cudaErrorInvalidValue);
    CHECK(fault_names() == Names(3, "bad pointer"));
  }
  SECTION("never") {
    int on_stack = 0;
    CHECK(cudaHostRegister(&on_stack, sizeof on_stack, 0) == cudaSuccess);
    CHECK(leaks() == Names{"device memory #1 (4096 bytes, device 0)", "event of device 0",
                           "pinned memory #2 (4096 bytes, device 0)",
                           "registered memory #3 (4 bytes, device 0)", "stream 1 of device 0",
                           "stream 2 of device 0"});
    CHECK_THAT(report(), contains("leak: event of device 0\n"));
    CHECK(cudaHostUnregister(&on_stack) == cudaSuccess);
  }
}

TEST_CASE("fake cudart: devices are not mixed up", "[device]") {
  const Fresh fresh;
  set_device_count(2);
  const Rig rig;
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  SECTION("a copy in a stream of another device than the current one") {
    CHECK(rig.upload(rig.a) == cudaErrorInvalidResourceHandle);
    CHECK(fault_names() == Names{"wrong device"});
  }
  SECTION("memory of another device than the stream's") {
    CHECK(rig.upload(Rig::new_stream()) == cudaErrorInvalidValue);
    CHECK(fault_names() == Names{"wrong device"});
  }
  SECTION("an event in a stream of another device") {
    CHECK(cudaEventRecord(rig.event, Rig::new_stream()) == cudaErrorInvalidResourceHandle);
    CHECK(fault_names() == Names{"wrong device"});
  }
  SECTION("freed or waited for while another device is current") {
    CHECK(cudaEventSynchronize(rig.event) == cudaSuccess);
    CHECK(cudaEventQuery(rig.event) == cudaSuccess);
    CHECK(cudaStreamSynchronize(rig.a) == cudaSuccess);
    CHECK(cudaStreamQuery(rig.a) == cudaSuccess);
    rig.give_back();
    CHECK(fault_names() == Names(9, "wrong device"));
    CHECK(leaks().empty());
  }
  SECTION("a kernel in a stream of another device") {
    register_kernel<ProbeJob, int>("probe_add", add_body);
    launch_probe_add(ProbeJob{}, 0, dim3(1), dim3(1), rig.a);
    CHECK(cudaGetLastError() == cudaErrorInvalidResourceHandle);
    CHECK(fault_names() == Names{"wrong device"});
  }
  SECTION("a kernel on memory of another device") {
    register_kernel<ProbeJob, int>("probe_add", add_body);
    const cudaStream_t stream = Rig::new_stream();
    launch_probe_add({rig.device, rig.device, 1, 0}, 0, dim3(1), dim3(1), stream);
    CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
    CHECK(fault_names() == Names(2, "wrong device"));
  }
}

TEST_CASE("fake cudart: kernels and their launches are checked", "[device]") {
  const Fresh fresh;
  const Rig rig;
  register_kernel<ProbeJob, int>("probe_add", add_body);
  const auto launched = [&](const ProbeJob& job) {
    launch_probe_add(job, 0, dim3(1), dim3(1), rig.a);
    CHECK(cudaGetLastError() == cudaSuccess);
    CHECK(cudaStreamSynchronize(rig.a) == cudaSuccess);
    return fault_names();
  };
  const int size = static_cast<int>(rig.size);
  SECTION("all is well") { CHECK(launched({rig.pinned, rig.device, size, 0}).empty()); }
  SECTION("out of bounds") {
    CHECK(launched({rig.pinned, rig.device + 1, size, 0}) == Names{"out of bounds"});
  }
  SECTION("pageable memory") {
    unsigned char byte = 0;
    CHECK(launched({&byte, rig.device, 1, 0}) == Names{"bad pointer"});
  }
  SECTION("freed before it ran") {
    hold(rig.a);
    launch_probe_add({rig.pinned, rig.device, size, 0}, 0, dim3(1), dim3(1), rig.a);
    CHECK(cudaFree(rig.device) == cudaSuccess);
    let_go(rig.a);
    CHECK(cudaStreamSynchronize(rig.a) == cudaSuccess);
    CHECK(fault_names() == Names{"freed memory"});
  }
  SECTION("dimensions that no device has") {
    const auto block = GENERATE(dim3(0), dim3(1025), dim3(64, 17), dim3(1, 1, 65));
    launch_probe_add({}, 0, dim3(1), block, rig.a);
    CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
    CHECK(fault_names() == Names{"bad argument"});
  }
  SECTION("no body") {
    int unrelated = 0;
    CHECK(cudaLaunchKernel(&unrelated, dim3(1), dim3(1), nullptr, 0, rig.a) ==
          cudaErrorInvalidDeviceFunction);
    CHECK(fault_names() == Names{"no kernel body"});
  }
  SECTION("a body that throws, one that calls the runtime") {
    cudaError_t answer = cudaSuccess;
    register_kernel<ProbeJob, int>("probe_add", [&](dim3, dim3, const ProbeJob&, const int&) {
      answer = cudaDeviceSynchronize();
      throw std::runtime_error("on purpose");
    });
    CHECK(launched({}) == Names{"call in a callback", "body threw"});
    CHECK_THAT(faults()[1].text, contains("on purpose"));
    CHECK(answer == cudaErrorNotPermitted);
  }
}
