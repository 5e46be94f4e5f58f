// SPDX-License-Identifier: Apache-2.0
// A loader uses only its own device, on any thread that uses or destroys it. Threads of these tests
// never choose a device, so device 0 is their current one and has no context.
#include <thread>

#include "precache/formats/error.hpp"
#include "reader/device/dlpack.hpp"
#include "tests/reader/device/device_support.hpp"

namespace precache {
namespace {

using test::FakeMachine;
using Devices = std::vector<int>;

struct Fixture {
  FakeMachine machine{3};
  test::TempFolder folder;
  Dataset dataset = Dataset::open(test::make_dataset(folder.path(), {}).folder);
  LoaderOptions options;

  Fixture() {
    options.batch_size = 4;
    options.threads = 1;
    options.transform.dtype = DType::kFloat16;
  }
  [[nodiscard]] std::optional<DeviceLoader> loader(DevicePath path) const {
    DeviceOptions device = test::by_path(path);
    device.device = 1;
    return std::make_optional<DeviceLoader>(dataset, options, device);
  }
  ~Fixture() {
    CHECK(fake_cudart::contexts() == Devices{1});
    int current = -1;
    CHECK(cudaGetDevice(&current) == cudaSuccess);
    CHECK(current == 0);
  }
};

template <typename Work>
void on_another_thread(Work work) {
  std::thread(work).join();
}

TEST_CASE("a loader makes a context only on its own device", "[device]") {
  for (const DevicePath path : {DevicePath::kStaged, DevicePath::kStrided, DevicePath::kGather}) {
    for (const bool elsewhere : {false, true}) {
      CAPTURE(name(path), elsewhere);
      const Fixture fixture;
      auto loader = fixture.loader(path);
      while (auto batch = loader->next()) {
        batch->wait_on(nullptr);
        batch->wait();
        batch->release(nullptr);
      }
      elsewhere ? on_another_thread([&] { loader.reset(); }) : loader.reset();
    }
  }
}

TEST_CASE("a loader that failed frees its memory on its own device", "[device]") {
  const Fixture fixture;
  auto loader = fixture.loader(DevicePath::kGather);
  fake_cudart::fail_call("cudaMemcpyBatchAsync", 1, cudaErrorLaunchFailure);
  CHECK_THROWS_AS(loader->next(), DeviceError);
  CHECK(fake_cudart::leaks().empty());
}

TEST_CASE("a loader that cannot be made frees its memory on its own device", "[device]") {
  const Fixture fixture;
  fake_cudart::fail_call("cudaHostAlloc", 3, cudaErrorMemoryAllocation);
  CHECK_THROWS_AS(fixture.loader(DevicePath::kGather), DeviceError);
}

TEST_CASE("batches make no context on another device", "[device]") {
  const Fixture fixture;
  auto loader = fixture.loader(DevicePath::kStaged);
  auto batch = loader->next();
  SECTION("released elsewhere") {
    on_another_thread([&] { batch->release(nullptr); });
  }
  SECTION("dropped elsewhere") {
    on_another_thread([&] { batch.reset(); });
  }
  SECTION("dropped elsewhere, as the last holder of the memory") {
    loader.reset();
    on_another_thread([&] { batch.reset(); });
  }
  SECTION("a tensor dropped elsewhere") {
    DLManagedTensor* const tensor = batch->to_dlpack(DeviceBatch::Part::kImages, nullptr);
    batch.reset();
    on_another_thread([&] { tensor->deleter(tensor); });
  }
  SECTION("a tensor dropped elsewhere, as the last holder of the memory") {
    DLManagedTensor* const tensor = batch->to_dlpack(DeviceBatch::Part::kImages, nullptr);
    batch.reset();
    loader.reset();
    on_another_thread([&] { tensor->deleter(tensor); });
  }
}

}  // namespace
}  // namespace precache
