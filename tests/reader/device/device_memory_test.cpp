// SPDX-License-Identifier: Apache-2.0
// Memory of the host runs out, at every place: no batch and no place of the ring is lost.
#include <cstddef>
#include <new>
#include <utility>

#include "tests/reader/device/device_support.hpp"

namespace {

thread_local std::uint64_t allocations_left = 0;  // 0: no end

}  // namespace

// The linker's option --wrap puts this in the place of operator new: sanitizers, which have an
// operator of their own, stay what they are. CUDA's calls do not throw, so the stand-in has memory.
extern "C" void* __real__Znwm(std::size_t size);  // NOLINT: the linker's names
extern "C" void* __wrap__Znwm(std::size_t size);

void* __wrap__Znwm(std::size_t size) {
  const bool counts = allocations_left != 0 && !fake_cudart::in_call();
  if (counts && --allocations_left == 0) throw std::bad_alloc();
  return __real__Znwm(size);
}

namespace precache {
namespace {

using test::FakeMachine;

TEST_CASE("out of memory, the loader loses neither batches nor room", "[device][malformed]") {
  const FakeMachine machine;
  const test::TempFolder folder;
  const Dataset dataset = Dataset::open(test::make_dataset(folder.path(), {}).folder);
  LoaderOptions options;
  options.batch_size = 4;
  options.threads = 1;
  options.transform.flip = true;
  Loader host(dataset, options);
  const auto expected = test::epoch_of(host);
  for (const DevicePath path : {DevicePath::kStaged, DevicePath::kStrided, DevicePath::kGather}) {
    DeviceOptions device = test::by_path(path);
    device.ring = 1;
    std::size_t failures = 0;
    for (std::uint64_t nth = 1; failures + 1 == nth || nth == 1; ++nth) {
      CAPTURE(name(path), nth);
      DeviceLoader loader(dataset, options, device);
      test::Consumer consumer;
      std::uint64_t left = nth;
      for (;;) {
        std::optional<DeviceBatch> batch;
        bool failed = false;
        allocations_left = left;
        try {
          batch = loader.next();
        } catch (const std::bad_alloc&) {
          failed = true;
        }
        left = std::exchange(allocations_left, 0);
        failures += failed ? 1 : 0;
        if (failed) continue;
        if (!batch) break;
        consumer.take(std::move(*batch));
      }
      const bool equal = consumer.finish() == expected;
      CHECK(equal);
    }
    CHECK(failures > 3);
  }
}

}  // namespace
}  // namespace precache
