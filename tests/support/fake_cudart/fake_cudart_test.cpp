// SPDX-License-Identifier: Apache-2.0
// Tests of the fake CUDA runtime without misuse.
#include "tests/support/fake_cudart/fake_cudart.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <numeric>
#include <thread>

#include "tests/support/fake_cudart/probe_kernels.hpp"
#include "tests/support/fake_cudart/testing.hpp"

using namespace fake_cudart;

namespace {

std::vector<unsigned char> counting(std::size_t size) {
  std::vector<unsigned char> bytes(size);
  std::iota(bytes.begin(), bytes.end(), static_cast<unsigned char>(0));
  return bytes;
}

std::vector<unsigned char> device_bytes(const void* device, std::size_t size) {
  std::vector<unsigned char> bytes(size);
  REQUIRE(cudaMemcpy(bytes.data(), device, size, cudaMemcpyDeviceToHost) == cudaSuccess);
  return bytes;
}

/// Gives time for things that must not happen.
void give_time() { std::this_thread::sleep_for(std::chrono::milliseconds(5)); }

}  // namespace

TEST_CASE("fake cudart: copies of all kinds arrive and leak nothing", "[device]") {
  const Fresh fresh;
  const Rig rig;
  const auto bytes = counting(rig.size);

  SECTION("pinned memory, there and back") {
    std::memcpy(rig.pinned, bytes.data(), rig.size);
    CHECK(rig.upload(rig.a) == cudaSuccess);
    CHECK(cudaStreamSynchronize(rig.a) == cudaSuccess);
    std::memset(rig.pinned, 0, rig.size);
    CHECK(rig.download(rig.a) == cudaSuccess);
    CHECK(cudaStreamSynchronize(rig.a) == cudaSuccess);
    CHECK(std::equal(bytes.begin(), bytes.end(), rig.pinned));
  }
  SECTION("a copy to pageable memory is finished when the call returns") {
    CHECK(cudaMemcpy(rig.device, bytes.data(), rig.size, cudaMemcpyHostToDevice) == cudaSuccess);
    std::vector<unsigned char> back(rig.size);
    CHECK(cudaMemcpyAsync(back.data(), rig.device, rig.size, cudaMemcpyDeviceToHost, rig.a) ==
          cudaSuccess);
    CHECK(back == bytes);
  }
  SECTION("rows with a pitch") {
    std::memcpy(rig.pinned, bytes.data(), rig.size);
    CHECK(cudaMemcpy2DAsync(rig.device, 10, rig.pinned + 3, 64, 10, 5, cudaMemcpyHostToDevice,
                            rig.a) == cudaSuccess);
    CHECK(cudaStreamSynchronize(rig.a) == cudaSuccess);
    std::vector<unsigned char> expected;
    for (std::size_t row = 0; row < 5; ++row)
      expected.insert(expected.end(), bytes.begin() + static_cast<long>(row * 64 + 3),
                      bytes.begin() + static_cast<long>(row * 64 + 13));
    CHECK(device_bytes(rig.device, 50) == expected);
  }
  SECTION("memset") {
    CHECK(cudaMemsetAsync(rig.device, 9, rig.size, rig.a) == cudaSuccess);
    CHECK(cudaStreamSynchronize(rig.a) == cudaSuccess);
    CHECK(device_bytes(rig.device, rig.size) == std::vector<unsigned char>(rig.size, 9));
  }
  rig.give_back();
  CHECK(report() == "");
}

TEST_CASE("fake cudart: a copy of pageable memory is not asynchronous", "[device]") {
  const Fresh fresh;
  const Rig rig;
  std::vector<unsigned char> source(rig.size, 3);
  const auto bytes = source;
  hold(rig.a);
  CHECK(cudaMemcpyAsync(rig.device, source.data(), rig.size, cudaMemcpyHostToDevice, rig.a) ==
        cudaSuccess);
  std::fill(source.begin(), source.end(), static_cast<unsigned char>(7));
  let_go(rig.a);
  CHECK(cudaStreamSynchronize(rig.a) == cudaSuccess);
  CHECK(device_bytes(rig.device, rig.size) == bytes);
  CHECK(fault_names() == Names{"unregistered memory"});
}

TEST_CASE("fake cudart: the host cannot access device memory, and nothing can access freed memory",
          "[device]") {
  const Fresh fresh;
  const Rig rig;
  std::array<int, 2> pipe_ends{};
  REQUIRE(pipe(pipe_ends.data()) == 0);
  // The kernel says what would be a SIGSEGV.
  const auto readable = [&](const void* pointer) {
    errno = 0;
    return write(pipe_ends[1], pointer, 1) == 1 || errno != EFAULT;
  };
  CHECK(readable(rig.pinned));
  CHECK_FALSE(readable(rig.device));
  CHECK_FALSE(readable(rig.pinned + rig.size));  // a closed page after every buffer
  CHECK(cudaFreeHost(rig.pinned) == cudaSuccess);
  CHECK_FALSE(readable(rig.pinned));
  close(pipe_ends[0]);
  close(pipe_ends[1]);
  CHECK(faults().empty());
}

TEST_CASE("fake cudart: a batch copies from a registered mapping", "[device]") {
  const Fresh fresh;
  const Rig rig;
  auto* const mapping = static_cast<unsigned char*>(
      mmap(nullptr, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  for (std::size_t i = 0; i < 1 << 16; ++i) mapping[i] = static_cast<unsigned char>(i * 7);
  REQUIRE(cudaHostRegister(mapping, 1 << 16, cudaHostRegisterDefault) == cudaSuccess);
  std::array<void*, 3> to = {rig.device, rig.device + 100, rig.device + 300};
  std::array<const void*, 3> from = {mapping + 40000, mapping + 5, mapping + 5};
  std::array<std::size_t, 3> sizes = {100, 200, 300};
  cudaMemcpyAttributes attributes{};
  const auto order = GENERATE(cudaMemcpySrcAccessOrderStream, cudaMemcpySrcAccessOrderDuringApiCall,
                              cudaMemcpySrcAccessOrderAny);
  attributes.srcAccessOrder = order;
  std::size_t first = 0;
  CHECK(cudaMemcpyBatchAsync(to.data(), from.data(), sizes.data(), 3, &attributes, &first, 1,
                             rig.a) == cudaSuccess);
  CHECK(cudaStreamSynchronize(rig.a) == cudaSuccess);
  const auto bytes = device_bytes(rig.device, 600);
  CHECK(std::equal(bytes.begin(), bytes.begin() + 100, mapping + 40000));
  CHECK(std::equal(bytes.begin() + 100, bytes.begin() + 300, mapping + 5));
  CHECK(std::equal(bytes.begin() + 300, bytes.end(), mapping + 5));
  CHECK(cudaHostUnregister(mapping) == cudaSuccess);
  munmap(mapping, 1 << 16);
  rig.give_back();
  CHECK(report() == "");
}

TEST_CASE("fake cudart: kernels that nvcc compiled run their bodies", "[device]") {
  const Fresh fresh;
  const Rig rig;
  CHECK(kernel_names() == Names{"_Z14probe_templateIiEvPT_S0_", "probe_add"});
  register_kernel<ProbeJob, int>(
      "probe_add", [](dim3 grid, dim3 block, const ProbeJob& job, const int& more) {
        const auto size = static_cast<std::size_t>(job.size);
        const unsigned char* const from = read_view(job.from, size);
        unsigned char* const to = write_view(job.to, size);
        for (std::size_t i = 0; i < std::min<std::size_t>(grid.x * block.x, size); ++i)
          to[i] = static_cast<unsigned char>(from[i] + job.add + more);
      });
  register_kernel<int*, int>(
      "_Z14probe_templateIiEvPT_S0_",
      [](dim3, dim3, int* const& to, const int& value) { *write_view(to, 1) = value; });
  const auto bytes = counting(64);
  REQUIRE(cudaMemcpy(rig.device, bytes.data(), 64, cudaMemcpyHostToDevice) == cudaSuccess);

  SECTION("by <<<>>>, arguments kept from the launch") {
    hold(rig.a);
    ProbeJob job{rig.device, rig.device + 64, 64, 1};
    launch_probe_add(job, 2, dim3(2), dim3(16), rig.a);
    job.add = 100;
    let_go(rig.a);
    CHECK(cudaGetLastError() == cudaSuccess);
    CHECK(cudaStreamSynchronize(rig.a) == cudaSuccess);
    const auto result = device_bytes(rig.device + 64, 64);
    CHECK(result[0] == 3);
    CHECK(result[31] == 34);
    CHECK(result[32] == 0xA5);  // beyond the grid, and memory is not zero to begin with
  }
  SECTION("by cudaLaunchKernel") {
    ProbeJob job{rig.device, rig.device + 64, 64, 1};
    int more = 5;
    std::array<void*, 2> arguments = {&job, &more};
    CHECK(cudaLaunchKernel(probe_add_stub(), dim3(1), dim3(64), arguments.data(), 0, rig.a) ==
          cudaSuccess);
    CHECK(cudaStreamSynchronize(rig.a) == cudaSuccess);
    CHECK(device_bytes(rig.device + 64, 64)[63] == 69);
    cudaFuncAttributes attributes{};
    CHECK(cudaFuncGetAttributes(&attributes, probe_add_stub()) == cudaSuccess);
    CHECK(attributes.maxThreadsPerBlock == 1024);
    int blocks = 0;
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, probe_add_stub(), 256, 0) ==
          cudaSuccess);
    CHECK(blocks == 8);
  }
  SECTION("of a template") {
    launch_probe_template(reinterpret_cast<int*>(rig.device), 12345, rig.a);
    CHECK(cudaStreamSynchronize(rig.a) == cudaSuccess);
    int value = 0;
    CHECK(cudaMemcpy(&value, rig.device, sizeof value, cudaMemcpyDeviceToHost) == cudaSuccess);
    CHECK(value == 12345);
  }
  CHECK(calls()["cudaLaunchKernel"] == 1);
  rig.give_back();
  CHECK(report() == "");
}

TEST_CASE("fake cudart: events order streams and inform the host", "[device]") {
  const Fresh fresh;
  const Rig rig;
  CHECK(cudaEventQuery(rig.event) == cudaSuccess);  // never recorded
  std::memset(rig.pinned, 1, rig.size);
  hold(rig.a);
  CHECK(rig.upload(rig.a) == cudaSuccess);
  rig.order(rig.a, rig.b);
  CHECK(cudaMemsetAsync(rig.device, 2, 100, rig.b) == cudaSuccess);
  give_time();
  CHECK(cudaEventQuery(rig.event) == cudaErrorNotReady);
  CHECK(cudaStreamQuery(rig.b) == cudaErrorNotReady);
  CHECK(cudaGetLastError() == cudaErrorNotReady);
  CHECK(cudaGetLastError() == cudaSuccess);
  let_go(rig.a);
  CHECK(cudaEventSynchronize(rig.event) == cudaSuccess);
  host_access(rig.pinned, rig.size, true);
  CHECK(cudaStreamSynchronize(rig.b) == cudaSuccess);
  CHECK(cudaStreamQuery(rig.b) == cudaSuccess);
  CHECK(device_bytes(rig.device, 101)[99] == 2);
  CHECK(device_bytes(rig.device, 101)[100] == 1);
  rig.give_back();
  CHECK(report() == "");
}

TEST_CASE("fake cudart: a wait is for the record at the time of the call", "[device]") {
  const Fresh fresh;
  const Rig rig;
  hold(rig.a);
  rig.order(rig.a, rig.b);
  const cudaStream_t other = Rig::new_stream();
  CHECK(cudaEventRecord(rig.event, other) == cudaSuccess);
  CHECK(cudaStreamSynchronize(other) == cudaSuccess);
  CHECK(cudaEventQuery(rig.event) == cudaSuccess);
  give_time();
  CHECK(cudaStreamQuery(rig.b) == cudaErrorNotReady);
  let_go(rig.a);
  CHECK(cudaStreamSynchronize(rig.b) == cudaSuccess);
  CHECK(cudaStreamDestroy(other) == cudaSuccess);
  rig.give_back();
  CHECK(report() == "");
}

TEST_CASE("fake cudart: the legacy stream takes turns with blocking streams", "[device]") {
  const Fresh fresh;
  const Rig rig;
  cudaStream_t blocking = nullptr;
  REQUIRE(cudaStreamCreateWithPriority(&blocking, cudaStreamDefault, 0) == cudaSuccess);
  hold(blocking);
  CHECK(cudaMemsetAsync(rig.device, 1, rig.size, blocking) == cudaSuccess);
  CHECK(cudaMemsetAsync(rig.device, 2, rig.size, nullptr) == cudaSuccess);
  CHECK(cudaMemsetAsync(rig.device, 3, 1, blocking) == cudaSuccess);
  give_time();
  let_go(blocking);
  CHECK(device_bytes(rig.device, 2) == std::vector<unsigned char>{3, 2});
  CHECK(cudaStreamDestroy(blocking) == cudaSuccess);
  rig.give_back();
  CHECK(report() == "");
}

TEST_CASE("fake cudart: a stream that is destroyed finishes its work", "[device]") {
  const Fresh fresh;
  const Rig rig;
  std::memset(rig.pinned, 4, rig.size);
  const cudaStream_t stream = Rig::new_stream();
  CHECK(rig.upload(stream) == cudaSuccess);
  CHECK(cudaStreamDestroy(stream) == cudaSuccess);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(device_bytes(rig.device, rig.size) == std::vector<unsigned char>(rig.size, 4));
  rig.give_back();
  CHECK(report() == "");
}

TEST_CASE("fake cudart: two devices, each thread with its own current one", "[device]") {
  const Fresh fresh;
  set_device_count(2);
  CHECK(cudaSetDevice(1) == cudaSuccess);
  int here = -1;
  int there = -1;
  std::thread([&] { cudaGetDevice(&there); }).join();
  CHECK(cudaGetDevice(&here) == cudaSuccess);
  CHECK(here == 1);
  CHECK(there == 0);
  const Rig rig;
  cudaPointerAttributes attributes{};
  CHECK(cudaPointerGetAttributes(&attributes, rig.device + 10) == cudaSuccess);
  CHECK(attributes.type == cudaMemoryTypeDevice);
  CHECK(attributes.device == 1);
  CHECK(cudaPointerGetAttributes(&attributes, &here) == cudaSuccess);
  CHECK(attributes.type == cudaMemoryTypeUnregistered);
  CHECK(rig.upload(rig.a) == cudaSuccess);
  CHECK(cudaStreamSynchronize(rig.a) == cudaSuccess);
  CHECK(cudaSetDevice(2) == cudaErrorInvalidDevice);
  CHECK(cudaSetDevice(0) == cudaSuccess);
  // An order between devices.
  const cudaStream_t of_zero = Rig::new_stream();
  rig.order(rig.a, of_zero);
  CHECK(cudaStreamSynchronize(of_zero) == cudaSuccess);
  CHECK(cudaStreamDestroy(of_zero) == cudaSuccess);
  CHECK(cudaSetDevice(1) == cudaSuccess);
  rig.give_back();
  CHECK(report() == "");
}

TEST_CASE("fake cudart: devices that were chosen or used have contexts", "[device]") {
  const Fresh fresh;
  set_device_count(4);
  int value = 0;
  CHECK(cudaGetDeviceCount(&value) == cudaSuccess);
  CHECK(cudaGetDevice(&value) == cudaSuccess);
  CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 3) == cudaSuccess);
  CHECK(contexts().empty());
  CHECK(cudaInitDevice(3, 0, 0) == cudaSuccess);
  CHECK(contexts() == std::vector{3});
  CHECK(cudaSetDevice(2) == cudaSuccess);
  CHECK(contexts() == std::vector{2, 3});
  std::thread([] { CHECK(cudaFree(nullptr) == cudaSuccess); }).join();
  CHECK(contexts() == std::vector{0, 2, 3});
}

TEST_CASE("fake cudart: threads with their own streams are independent", "[device][concurrency]") {
  const Fresh fresh;
  std::vector<std::thread> threads;
  std::array<int, 4> wrong{};
  for (std::size_t t = 0; t < wrong.size(); ++t)
    threads.emplace_back([&wrong, t] {
      void* device = nullptr;
      void* pinned = nullptr;
      cudaStream_t stream = nullptr;
      wrong[t] += cudaMalloc(&device, 1000) != cudaSuccess;
      wrong[t] += cudaHostAlloc(&pinned, 1000, 0) != cudaSuccess;
      wrong[t] += cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess;
      for (int round = 0; round < 50; ++round) {
        std::memset(pinned, static_cast<int>(t) + round, 1000);
        wrong[t] += cudaMemcpyAsync(device, pinned, 1000, cudaMemcpyDefault, stream) != cudaSuccess;
        wrong[t] += cudaStreamSynchronize(stream) != cudaSuccess;
      }
      unsigned char last = 0;
      wrong[t] += cudaMemcpyAsync(&last, device, 1, cudaMemcpyDefault, stream) != cudaSuccess;
      wrong[t] += last != t + 49;
      wrong[t] += cudaFree(device) != cudaSuccess;
      wrong[t] += cudaFreeHost(pinned) != cudaSuccess;
      wrong[t] += cudaStreamDestroy(stream) != cudaSuccess;
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::array<int, 4>{});
  CHECK(report() == "");
}
