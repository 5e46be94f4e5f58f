// SPDX-License-Identifier: Apache-2.0
// Every call to CUDA fails once. The error names the call, and nothing leaks.
#include <functional>

#include "precache/formats/error.hpp"
#include "tests/reader/device/device_support.hpp"

namespace precache {
namespace {

using test::by_path;
using test::contains;
using test::FakeMachine;

/// Calls that free or restore something. Nothing is lost if they fail, so there is no error.
const std::set<std::string> kQuiet{
    "cudaFree",         "cudaFreeHost",    "cudaHostUnregister",       "cudaStreamDestroy",
    "cudaEventDestroy", "cuCtxPopCurrent", "cuDevicePrimaryCtxRelease"};

/// Calls whose failure the consumer does not see only if the loader's destructor makes them.
const std::set<std::string> kLoud{"cudaDeviceGetStreamPriorityRange",
                                  "cudaStreamCreateWithPriority",
                                  "cudaEventCreateWithFlags",
                                  "cudaMalloc",
                                  "cudaHostAlloc",
                                  "cudaFuncGetAttributes",
                                  "cudaMemcpyAsync",
                                  "cudaMemcpy2DAsync",
                                  "cudaMemcpyBatchAsync",
                                  "cudaLaunchKernel",
                                  "cudaEventRecord",
                                  "cudaEventQuery",
                                  "cudaEventSynchronize",
                                  "cudaStreamWaitEvent"};

struct Fixture {
  test::TempFolder folder;
  Dataset dataset = Dataset::open(test::make_dataset(folder.path(), {}).folder);
  LoaderOptions options;

  Fixture() {
    options.batch_size = 4;
    options.threads = 1;
    options.transform.dtype = DType::kFloat16;
    options.transform.flip = true;
  }
};

struct Outcome {
  std::string error;                           // the message of the exception
  std::map<std::string, std::uint64_t> calls;  // without an exception: those before the destructor
};

/// Reads two epochs on device 1 while another is current. Checks that an exception is thrown again
/// by the next call.
Outcome read(const Fixture& fixture, DevicePath path) {
  std::optional<DeviceBatch> held;
  try {
    DeviceOptions device = by_path(path);
    device.device = 1;
    DeviceLoader loader(fixture.dataset, fixture.options, device);
    try {
      for (int epoch = 0; epoch < 2; ++epoch) {
        while (auto batch = loader.next()) {
          batch->wait_on(nullptr);
          batch->release(nullptr);
          if (!held) held = loader.next();
        }
        held->wait();
        held.reset();  // without a release
      }
    } catch (const DeviceError& error) {
      const std::string first = error.what();
      const OrderState state = loader.state();
      held.reset();
      try {
        // A failure outside next() need not stop it.
        while (loader.next()) {
        }
        (void)loader.stats();
      } catch (const DeviceError& again) {
        CHECK(again.what() == test::message_of<DeviceError>([&] { (void)loader.next(); }));
        CHECK(again.what() == test::message_of<DeviceError>([&] { loader.resume(state); }));
        CHECK(loader.spec().dtype == DType::kFloat16);
        CHECK(loader.stats().reason != "");
      }
      return {first, {}};
    }
    return {"", fake_cudart::calls()};
  } catch (const DeviceError& error) {
    return {error.what(), {}};
  } catch (const Unsupported& error) {
    return {error.what(), {}};
  }
}

/// Lets the nth call of each function fail, for n = 1, 2 and so on, until there are no more calls.
/// Returns the number of failures.
std::size_t fail_each(const Fixture& fixture, DevicePath path, const std::string& call) {
  for (std::uint64_t nth = 1;; ++nth) {
    const FakeMachine machine(2);
    fake_cudart::fail_call(call, nth, cudaErrorLaunchFailure);
    CAPTURE(name(path), call, nth);
    const auto [error, calls_by_use] = read(fixture, path);
    const auto calls = fake_cudart::calls();
    const auto made = calls.find(call);
    if (made == calls.end() || made->second < nth) {
      CHECK(error == "");
      return nth - 1;
    }
    const auto used = calls_by_use.find(call);
    const bool in_use = used == calls_by_use.end() || nth <= used->second;
    int current = -1;
    CHECK(cudaGetDevice(&current) == cudaSuccess);
    CHECK(current == 0);
    if (kQuiet.contains(call)) {
      CHECK(error == "");
    } else if (call == "cudaGetDeviceCount") {
      CHECK_THAT(error, contains("no GPU") && contains("cudaErrorLaunchFailure"));
    } else if ((kLoud.contains(call) && in_use) || !error.empty()) {
      CHECK_THAT(error,
                 contains(call) && contains("device 1") && contains("cudaErrorLaunchFailure"));
    }
  }
}

TEST_CASE("if any call fails, nothing leaks and the loader can be destroyed",
          "[device][malformed]") {
  const Fixture fixture;
  for (const DevicePath path :
       {DevicePath::kAuto, DevicePath::kStaged, DevicePath::kStrided, DevicePath::kGather}) {
    std::map<std::string, std::uint64_t> calls;
    {
      const FakeMachine machine(2);
      CHECK(read(fixture, path).error == "");
      calls = fake_cudart::calls();
    }
    for (const auto& [call, count] : calls) {
      CAPTURE(name(path), call, count);
      CHECK(fail_each(fixture, path, call) >= 1);
    }
  }
}

TEST_CASE("the error of a failed call names the call", "[device][malformed]") {
  const Fixture fixture;
  const auto error_of = [&](DevicePath path, const std::string& call) {
    const FakeMachine machine(2);
    fake_cudart::fail_call(call, 1, cudaErrorLaunchFailure);
    return read(fixture, path).error;
  };
  for (const std::string call :
       {"cudaStreamCreateWithPriority", "cudaEventCreateWithFlags", "cudaMalloc", "cudaHostAlloc",
        "cudaMemcpyAsync", "cudaLaunchKernel", "cudaEventRecord", "cudaInitDevice", "cudaGetDevice",
        "cudaGetDriverEntryPointByVersion", "cuDevicePrimaryCtxRetain", "cuCtxPushCurrent",
        "cudaStreamWaitEvent", "cudaEventQuery", "cudaDeviceSynchronize"}) {
    CHECK_THAT(error_of(DevicePath::kStaged, call), contains(call));
  }
  for (const std::string call :
       {"cudaDeviceGetAttribute", "cudaHostRegister", "cudaMemcpyBatchAsync"}) {
    CHECK_THAT(error_of(DevicePath::kGather, call), contains(call));
  }
  CHECK_THAT(error_of(DevicePath::kStrided, "cudaMemcpy2DAsync"), contains("cudaMemcpy2DAsync"));
}

TEST_CASE("a loader can be destroyed after its device is lost", "[device][malformed]") {
  const Fixture fixture;
  std::uint64_t calls = 0;
  {
    const FakeMachine machine(2);
    CHECK(read(fixture, DevicePath::kStaged).error == "");
    calls = fake_cudart::call_count();
  }
  for (std::uint64_t nth = 1; nth <= calls; nth += 7) {
    const FakeMachine machine(2);
    fake_cudart::fail_any_call(nth, cudaErrorIllegalAddress, fake_cudart::Repeat::kForever);
    CAPTURE(nth);
    (void)read(fixture, DevicePath::kStaged);
  }
}

TEST_CASE("a device without a kernel is an error when the loader is made", "[device]") {
  const FakeMachine machine;
  Fixture fixture;
  for (const auto& [error, hint] :
       {std::pair(cudaErrorNoKernelImageForDevice, "PRECACHE_CUDA_ARCHITECTURES"),
        std::pair(cudaErrorInvalidDeviceFunction, "PRECACHE_CUDA_ARCHITECTURES"),
        std::pair(cudaErrorUnsupportedPtxVersion, "driver")}) {
    fake_cudart::fail_call("cudaFuncGetAttributes", 1, error);
    try {
      DeviceLoader(fixture.dataset, fixture.options);
      FAIL("no error was thrown");
    } catch (const Unsupported& refusal) {
      CHECK_THAT(refusal.what(), contains("device 0") && contains(cudaGetErrorName(error)));
      CHECK_THAT(refusal.hint(), contains(hint));
    }
    CHECK(cudaGetLastError() == cudaSuccess);
    CHECK(fake_cudart::report() == "");
  }
  // Without a transform, no kernel is needed.
  fake_cudart::fail_call("cudaFuncGetAttributes", 1, cudaErrorNoKernelImageForDevice);
  fixture.options.transform = {};
  DeviceLoader loader(fixture.dataset, fixture.options);
  CHECK(loader.next());
}

TEST_CASE("the error of too little device memory has a hint", "[device]") {
  const FakeMachine machine;
  const Fixture fixture;
  fake_cudart::set_device_memory(1000);
  try {
    DeviceLoader(fixture.dataset, fixture.options);
    FAIL("no error was thrown");
  } catch (const DeviceError& error) {
    CHECK_THAT(error.what(), contains("cudaMalloc") && contains("cudaErrorMemoryAllocation"));
    CHECK_THAT(error.hint(), contains("`device_batches`"));
  }
}

}  // namespace
}  // namespace precache
