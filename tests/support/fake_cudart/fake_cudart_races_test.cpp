// SPDX-License-Identifier: Apache-2.0
// Unordered uses of the same bytes are found, ordered ones are not reported. The result does
// not depend on the order of execution: each case gives the same faults with and without streams
// that wait.
#include <cstring>

#include "tests/support/fake_cudart/probe_kernels.hpp"
#include "tests/support/fake_cudart/testing.hpp"

using namespace fake_cudart;

namespace {

/// A kernel that notes accesses to its arguments but does not use their bytes.
void touch(const unsigned char* from, unsigned char* to, std::size_t size, cudaStream_t stream) {
  register_kernel<ProbeJob, int>("probe_add", [](dim3, dim3, const ProbeJob& job, const int&) {
    const auto count = static_cast<std::size_t>(job.size);
    if (job.from != nullptr) (void)read_view(job.from, count);
    if (job.to != nullptr) (void)write_view(job.to, count);
  });
  launch_probe_add({from, to, static_cast<int>(size), 0}, 0, dim3(1), dim3(1), stream);
  REQUIRE(cudaGetLastError() == cudaSuccess);
}

Names after_all(const Rig& rig) {
  let_go(rig.a);
  let_go(rig.b);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  return fault_names();
}

}  // namespace

TEST_CASE("fake cudart: streams that share memory need an event", "[device]") {
  const Fresh fresh;
  const Rig rig;
  const bool waiting = GENERATE(false, true);
  CAPTURE(waiting);
  if (waiting) hold(rig.a);
  const bool ordered = GENERATE(false, true);
  const auto order = [&] {
    if (ordered) rig.order(rig.a, rig.b);
  };
  const Names expected = ordered ? Names{} : Names{"race"};
  SECTION("write, write") {
    CHECK(cudaMemsetAsync(rig.device, 1, 100, rig.a) == cudaSuccess);
    order();
    CHECK(cudaMemsetAsync(rig.device + 99, 2, 100, rig.b) == cudaSuccess);
    CHECK(after_all(rig) == expected);
  }
  SECTION("upload, read by a kernel") {
    CHECK(rig.upload(rig.a) == cudaSuccess);
    order();
    touch(rig.device, nullptr, 10, rig.b);
    CHECK(after_all(rig) == expected);
  }
  SECTION("read by a kernel, upload: a slot reused") {
    touch(rig.device, nullptr, 10, rig.a);
    order();
    CHECK(rig.upload(rig.b) == cudaSuccess);
    CHECK(after_all(rig) == expected);
  }
  SECTION("two kernels") {
    touch(nullptr, rig.device, 10, rig.a);
    order();
    touch(rig.device + 9, nullptr, 10, rig.b);
    CHECK(after_all(rig) == expected);
  }
  SECTION("download, refill of the pinned buffer") {
    CHECK(rig.download(rig.a) == cudaSuccess);
    order();
    CHECK(cudaMemsetAsync(rig.pinned, 0, 1, rig.b) == cudaSuccess);
    CHECK(after_all(rig) == expected);
  }
}

TEST_CASE("fake cudart: accesses to different bytes are not a race", "[device]") {
  const Fresh fresh;
  const Rig rig;
  SECTION("reads") {
    touch(rig.device, nullptr, 100, rig.a);
    touch(rig.device, nullptr, 100, rig.b);
    CHECK(rig.download(rig.a) == cudaSuccess);
  }
  SECTION("neighbours") {
    CHECK(cudaMemsetAsync(rig.device, 1, 100, rig.a) == cudaSuccess);
    CHECK(cudaMemsetAsync(rig.device + 100, 2, 100, rig.b) == cudaSuccess);
  }
  SECTION("rows that interlock") {
    const auto rows = [&](std::size_t offset, cudaStream_t stream) {
      return cudaMemcpy2DAsync(rig.device + offset, 32, rig.pinned, 16, 16, 8,
                               cudaMemcpyHostToDevice, stream);
    };
    CHECK(rows(0, rig.a) == cudaSuccess);
    CHECK(rows(16, rig.b) == cudaSuccess);
    CHECK(after_all(rig).empty());
    CHECK(rows(0, rig.a) == cudaSuccess);
    CHECK(rows(15, rig.b) == cudaSuccess);
    CHECK(after_all(rig) == Names{"race"});
    return;
  }
  SECTION("one stream") {
    CHECK(rig.upload(rig.a) == cudaSuccess);
    touch(rig.device, rig.device, 100, rig.a);
    CHECK(rig.download(rig.a) == cudaSuccess);
  }
  CHECK(after_all(rig).empty());
}

TEST_CASE("fake cudart: order passes through any chain of streams and waits", "[device]") {
  const Fresh fresh;
  const Rig rig;
  const cudaStream_t middle = Rig::new_stream();
  CHECK(rig.upload(rig.a) == cudaSuccess);
  SECTION("stream, stream, stream") {
    rig.order(rig.a, middle);
    rig.order(middle, rig.b);
  }
  SECTION("the host waits for the stream") { CHECK(cudaStreamSynchronize(rig.a) == cudaSuccess); }
  SECTION("the host polls until the work is done") {
    while (cudaStreamQuery(rig.a) == cudaErrorNotReady) {
    }
  }
  SECTION("the host waits for the device") { CHECK(cudaDeviceSynchronize() == cudaSuccess); }
  CHECK(rig.download(rig.b) == cudaSuccess);
  CHECK(after_all(rig).empty());
}

TEST_CASE("fake cudart: the event must come after the use", "[device]") {
  const Fresh fresh;
  const Rig rig;
  CHECK(cudaEventRecord(rig.event, rig.a) == cudaSuccess);
  CHECK(rig.upload(rig.a) == cudaSuccess);
  CHECK(cudaStreamWaitEvent(rig.b, rig.event, 0) == cudaSuccess);
  CHECK(cudaMemsetAsync(rig.device, 0, 1, rig.b) == cudaSuccess);
  CHECK(after_all(rig) == Names{"race"});
}

TEST_CASE("fake cudart: the host must not use memory that is in use", "[device]") {
  const Fresh fresh;
  const Rig rig;
  const bool synced = GENERATE(false, true);
  const auto wait = [&] {
    if (synced) REQUIRE(cudaStreamSynchronize(rig.a) == cudaSuccess);
  };
  const Names expected = synced ? Names{} : Names{"race"};
  SECTION("refills the source") {
    CHECK(rig.upload(rig.a) == cudaSuccess);
    wait();
    host_access(rig.pinned + 100, 1, true);
    CHECK(fault_names() == expected);
  }
  SECTION("reads the result") {
    CHECK(rig.download(rig.a) == cudaSuccess);
    wait();
    host_access(rig.pinned, rig.size, false);
    CHECK(fault_names() == expected);
  }
  SECTION("frees device memory") {
    CHECK(rig.upload(rig.a) == cudaSuccess);
    wait();
    CHECK(cudaFree(rig.device) == cudaSuccess);
    CHECK(after_all(rig) == expected);
  }
  SECTION("frees pinned memory") {
    CHECK(rig.upload(rig.a) == cudaSuccess);
    wait();
    CHECK(cudaFreeHost(rig.pinned) == cudaSuccess);
    CHECK(after_all(rig) == expected);
  }
  SECTION("unregisters") {
    std::vector<unsigned char> memory(100);
    CHECK(cudaHostRegister(memory.data(), 100, 0) == cudaSuccess);
    CHECK(cudaMemcpyAsync(rig.device, memory.data(), 100, cudaMemcpyHostToDevice, rig.a) ==
          cudaSuccess);
    wait();
    CHECK(cudaHostUnregister(memory.data()) == cudaSuccess);
    CHECK(after_all(rig) == expected);
  }
  SECTION("may read the source") {
    CHECK(rig.upload(rig.a) == cudaSuccess);
    host_access(rig.pinned, rig.size, false);
    CHECK(fault_names().empty());
  }
}

TEST_CASE("fake cudart: a source that changes before its copy runs is a fault", "[device]") {
  const Fresh fresh;
  const Rig rig;
  hold(rig.a);
  SECTION("changed by the host") {
    CHECK(rig.upload(rig.a) == cudaSuccess);
    rig.pinned[rig.size - 1] = 1;
    CHECK(after_all(rig) == Names{"source changed"});
    std::vector<unsigned char> back(rig.size);  // the copy reads the source when it runs
    CHECK(cudaMemcpy(back.data(), rig.device, rig.size, cudaMemcpyDeviceToHost) == cudaSuccess);
    CHECK(back[rig.size - 1] == 1);
  }
  SECTION("changed by earlier work of the stream") {
    CHECK(cudaMemsetAsync(rig.pinned, 3, rig.size, rig.a) == cudaSuccess);
    CHECK(rig.upload(rig.a) == cudaSuccess);
    CHECK(after_all(rig).empty());
  }
}

TEST_CASE("fake cudart: a batch may read its source early if its attributes allow it", "[device]") {
  const Fresh fresh;
  const Rig rig;
  cudaMemcpyAttributes attributes{};
  attributes.srcAccessOrder =
      GENERATE(cudaMemcpySrcAccessOrderStream, cudaMemcpySrcAccessOrderDuringApiCall,
               cudaMemcpySrcAccessOrderAny);
  CAPTURE(attributes.srcAccessOrder);
  void* to = rig.device;
  const void* from = rig.pinned;
  std::size_t size = rig.size;
  std::size_t first = 0;
  hold(rig.a);
  CHECK(cudaMemsetAsync(rig.pinned, 3, rig.size, rig.a) == cudaSuccess);
  CHECK(cudaMemcpyBatchAsync(&to, &from, &size, 1, &attributes, &first, 1, rig.a) == cudaSuccess);
  const bool in_order = attributes.srcAccessOrder == cudaMemcpySrcAccessOrderStream;
  CHECK(after_all(rig) == (in_order ? Names{} : Names{"race"}));
}

TEST_CASE("fake cudart: a ring used for long has no faults and is still checked", "[device]") {
  const Fresh fresh;
  set_delays(3, 0);
  const Rig rig;
  const cudaEvent_t used = Rig::new_event();
  CHECK(cudaMemsetAsync(rig.device, 1, 10, rig.a) == cudaSuccess);
  for (int round = 0; round < 400; ++round) {
    CHECK(cudaStreamWaitEvent(rig.a, used, 0) == cudaSuccess);
    CHECK(cudaMemsetAsync(rig.device + 10, round, 100, rig.a) == cudaSuccess);
    rig.order(rig.a, rig.b);
    touch(rig.device + 10, nullptr, 100, rig.b);
    CHECK(cudaEventRecord(used, rig.b) == cudaSuccess);
  }
  CHECK(fault_names().empty());
  SECTION("the last use") {
    CHECK(cudaMemsetAsync(rig.device + 10, 0, 1, rig.a) == cudaSuccess);  // forgot to wait
  }
  SECTION("the first use, which nothing has overwritten since") {
    touch(rig.device, nullptr, 1, Rig::new_stream());
  }
  CHECK(after_all(rig) == Names{"race"});
}
