// SPDX-License-Identifier: Apache-2.0
// Host memory runs out at every allocation. No batch and no place of the ring is lost.
#include <cstddef>
#include <new>
#include <utility>

#include "reader/device/dlpack.hpp"
#include "tests/reader/device/device_support.hpp"

namespace {

thread_local std::uint64_t allocations_left = 0;  // 0: no limit

}  // namespace

// The linker's option --wrap replaces operator new with this. Sanitizers keep their own operator
// new. Calls of CUDA do not throw, so the fake always gets memory.
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

TEST_CASE("a loader that runs out of memory loses neither batches nor places",
          "[device][malformed]") {
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
    device.device_batches = 1;
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

/// Runs `call` and lets its nth allocation fail. False if that ended the call.
template <typename Call>
bool without_memory(std::uint64_t nth, const Call& call) {
  allocations_left = nth;
  try {
    call();
  } catch (const std::bad_alloc&) {
    allocations_left = 0;
    return false;
  }
  allocations_left = 0;
  return true;
}

TEST_CASE("batches can be released without memory", "[device][malformed]") {
  const FakeMachine machine;
  const test::TempFolder folder;
  const Dataset dataset =
      Dataset::open(test::make_dataset(folder.path(), {.shards = {20, 11, 9}}).folder);
  LoaderOptions options;
  options.batch_size = 1;
  options.threads = 1;
  options.prefetch = 1;
  const test::UserStream stream;
  const test::UserStream other;
  Loader host(dataset, options);
  const auto expected = test::epoch_of(host);
  // Hundreds of times, because containers allocate rarely: a deque of 64 numbers once in 64.
  constexpr std::size_t kTimes = 400;
  DeviceOptions device;
  device.device_batches = 2;
  DeviceLoader loader(dataset, options, device);
  const auto next = [&] {
    auto batch = loader.next();
    return batch ? std::move(batch) : loader.next();  // from the next epoch
  };
  SECTION("dropped") {
    for (std::size_t i = 0; i < kTimes; ++i) {
      auto batch = next();
      CHECK(without_memory(1, [&] { batch.reset(); }));
    }
  }
  SECTION("released") {
    for (std::size_t i = 0; i < kTimes; ++i) {
      auto batch = next();
      // There may be no memory to note the stream; the batch is released anyway.
      (void)without_memory(1 + i % 2, [&] { batch->release(stream.get()); });
    }
  }
  SECTION("by the last of its tensors") {
    for (std::size_t i = 0; i < kTimes; ++i) {
      auto batch = next();
      DLManagedTensor* const images = batch->to_dlpack(DeviceBatch::Part::kImages, stream.get());
      DLManagedTensor* const labels = batch->to_dlpack(DeviceBatch::Part::kLabels, other.get());
      batch.reset();
      images->deleter(images);
      CHECK(without_memory(1 + i % 3, [&] { labels->deleter(labels); }));
    }
  }
  SECTION("when a tensor cannot be made") {
    for (std::size_t i = 0; i < kTimes; ++i) {
      auto batch = next();
      const std::uint64_t records = fake_cudart::calls()["cudaEventRecord"];
      const bool made = without_memory(
          1 + i % 2, [&] { (void)batch->to_dlpack(DeviceBatch::Part::kImages, stream.get()); });
      CHECK_FALSE(made);
      batch.reset();
      // No tensor was made for a stream, so the batch waits for all of them.
      CHECK(fake_cudart::calls()["cudaEventRecord"] == records);
    }
  }
  // The loader continues in each case.
  while (loader.next()) {
  }
  const bool equal = test::epoch_of(loader) == expected;
  CHECK(equal);
}

}  // namespace
}  // namespace precache
