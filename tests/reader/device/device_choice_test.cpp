// SPDX-License-Identifier: Apache-2.0
// Tests which path a loader chooses, and its errors if none is possible.
#include <sys/mman.h>

#include "precache/formats/error.hpp"
#include "tests/reader/device/device_support.hpp"

namespace precache {
namespace {

using test::by_path;
using test::contains;
using test::epoch_of;
using test::FakeMachine;
using test::message_of;

struct Fixture {
  test::TempFolder folder;
  Dataset dataset = Dataset::open(test::make_dataset(folder.path(), {}).folder);
  LoaderOptions options;
  std::uint64_t bytes = 0;  // of all shards

  Fixture() {
    options.batch_size = 4;
    options.threads = 1;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
      if (entry.path().extension() == ".tar") bytes += entry.file_size();
    }
  }
  [[nodiscard]] std::string refusal(const DeviceOptions& device) const {
    return message_of<InvalidArgument>([&] { DeviceLoader(dataset, options, device); });
  }
  /// Checks that all batches of an epoch are staged and right; returns the reason.
  [[nodiscard]] std::string staged_because(const DeviceOptions& device) const {
    DeviceLoader loader(dataset, options, device);
    Loader expected(dataset, options);
    const bool equal = epoch_of(loader) == epoch_of(expected);
    CHECK(equal);
    const DeviceStats stats = loader.stats();
    CHECK(stats.strided + stats.gathered == 0);
    CHECK(stats.staged >= 3);
    CHECK(stats.bytes_registered == 0);
    return stats.reason;
  }
};

TEST_CASE("names of paths are parsed", "[device]") {
  for (const DevicePath path :
       {DevicePath::kAuto, DevicePath::kStaged, DevicePath::kStrided, DevicePath::kGather}) {
    CHECK(parse_device_path(name(path)) == path);
  }
  CHECK_THROWS_AS(parse_device_path("Auto"), InvalidArgument);
}

TEST_CASE("shards beyond the budget are staged", "[device]") {
  const FakeMachine machine;
  const Fixture fixture;
  DeviceOptions device;
  device.pin_shards_up_to_bytes = fixture.bytes - 1;
  CHECK_THAT(fixture.staged_because(device), contains(std::to_string(fixture.bytes)));
  CHECK(fake_cudart::calls().count("cudaHostRegister") == 0);

  device.pin_shards_up_to_bytes = fixture.bytes;
  DeviceLoader loader(fixture.dataset, fixture.options, device);
  CHECK(loader.stats().bytes_registered == fixture.bytes);
  CHECK_THAT(loader.stats().reason, contains("are pinned"));

  for (const DevicePath path : {DevicePath::kStrided, DevicePath::kGather}) {
    device.device_path = path;
    device.pin_shards_up_to_bytes = fixture.bytes - 1;
    CHECK_THAT(fixture.refusal(device), contains("may be pinned"));
  }
}

TEST_CASE("nothing is registered by default", "[device]") {
  const FakeMachine machine;
  const Fixture fixture;
  CHECK_THAT(fixture.staged_because({}), contains("`pin_shards_up_to_bytes` is 0"));
  CHECK(fake_cudart::calls().count("cudaHostRegister") == 0);
  DeviceOptions device;
  device.device_path = DevicePath::kGather;
  CHECK_THAT(fixture.refusal(device), contains("more than the 0 that may be pinned"));
}

TEST_CASE("shards that the driver refuses to register are staged, and none stays registered",
          "[device]") {
  const FakeMachine machine;
  const Fixture fixture;
  for (const std::uint64_t nth : {1U, 2U, 3U}) {
    CAPTURE(nth);
    fake_cudart::fail_call("cudaHostRegister", nth, cudaErrorNotSupported);
    const std::string reason = fixture.staged_because(by_path(DevicePath::kAuto));
    CHECK_THAT(reason, contains("cudaHostRegister") && contains(".tar") &&
                           contains("cudaErrorNotSupported"));
    CHECK(fake_cudart::report() == "");
    for (const DevicePath path : {DevicePath::kStrided, DevicePath::kGather}) {
      fake_cudart::fail_call("cudaHostRegister", nth, cudaErrorNotSupported);
      CHECK_THAT(message_of<DeviceError>(
                     [&] { DeviceLoader(fixture.dataset, fixture.options, by_path(path)); }),
                 contains("cudaHostRegister") && contains("device 0"));
      CHECK(fake_cudart::report() == "");
    }
  }
  fake_cudart::set_register_limit(fixture.bytes - 1);
  CHECK_THAT(fixture.staged_because(by_path(DevicePath::kAuto)),
             contains("cudaErrorMemoryAllocation"));
}

TEST_CASE("a mapping is registered as read-only if the device supports it", "[device]") {
  const FakeMachine machine;  // refuses read-only mappings unless the attribute is set
  const Fixture fixture;
  for (const int read_only : {0, 1}) {
    CAPTURE(read_only);
    fake_cudart::set_attribute(cudaDevAttrHostRegisterReadOnlySupported, read_only);
    DeviceLoader loader(fixture.dataset, fixture.options, by_path(DevicePath::kGather));
    DeviceLoader other(fixture.dataset, fixture.options, by_path(DevicePath::kStrided));
    Loader expected(fixture.dataset, fixture.options);
    const auto wanted = epoch_of(expected);
    const bool equal = epoch_of(loader) == wanted && epoch_of(other) == wanted;
    CHECK(equal);
  }
}

TEST_CASE("impossible paths and devices are refused", "[device]") {
  const FakeMachine machine(2);
  Fixture fixture;
  DeviceOptions device;
  for (const int number : {-1, 2, 100}) {
    device.device = number;
    CHECK_THAT(fixture.refusal(device), contains("got " + std::to_string(number)));
  }
  device = {};
  for (const std::size_t batches : {std::size_t{0}, std::size_t{1025}, SIZE_MAX}) {
    device.device_batches = batches;
    CHECK_THAT(fixture.refusal(device), contains("`device_batches`"));
  }
  device = by_path(DevicePath::kStrided);
  for (const Shuffle shuffle : {Shuffle::kBlock, Shuffle::kFull}) {
    fixture.options.order.shuffle = shuffle;
    CHECK_THAT(fixture.refusal(device), contains("shuffled"));
  }
  fixture.options = {};
  fixture.options.batch_size = 0;
  CHECK_THAT(fixture.refusal({}), contains("`batch_size`"));
  fixture.options = {};
  fixture.options.prefetch = 0;
  CHECK_THAT(fixture.refusal({}), contains("prefetch"));
  fixture.options = {};
  fixture.options.transform.crop = Crop{100, 100};
  CHECK_THAT(fixture.refusal({}), contains("crop"));
}

TEST_CASE("without a driver or a GPU the loader says so at once", "[device]") {
  const FakeMachine machine;
  const Fixture fixture;
  const auto refusal = [&] {
    return message_of<Unsupported>([&] { DeviceLoader(fixture.dataset, fixture.options); });
  };
  fake_cudart::set_device_count(0);
  CHECK_THAT(refusal(), contains("no GPU") && contains("cudaErrorNoDevice"));
  fake_cudart::set_device_count(1);
  fake_cudart::set_driver_version(0);
  CHECK_THAT(refusal(), contains("cudaErrorInsufficientDriver"));
  CHECK(cudaGetLastError() == cudaSuccess);  // no error is left for the caller
}

TEST_CASE("the error of missing CUDA has a hint", "[device]") {
  const FakeMachine machine;
  const Fixture fixture;
  const auto hint = [&](cudaError_t error, int driver) -> std::string {
    fake_cudart::set_driver_version(driver);
    if (driver != 0) fake_cudart::fail_call("cudaGetDeviceCount", 1, error);
    try {
      DeviceLoader(fixture.dataset, fixture.options);
    } catch (const Unsupported& refusal) {
      return refusal.hint();
    }
    return "";
  };
  CHECK_THAT(hint(cudaErrorInsufficientDriver, 0),
             contains("No NVIDIA driver") && contains("r580"));
  CHECK_THAT(hint(cudaErrorInsufficientDriver, 12040), contains("CUDA 12.4") && contains("r580"));
  CHECK_THAT(hint(cudaErrorInitializationError, 13000), contains("forked") && contains("spawn"));
  CHECK_THAT(hint(cudaErrorNoDevice, 13000), contains("nvidia-smi"));
}

TEST_CASE("a crop that cannot move is a warning on a device too", "[device]") {
  const FakeMachine machine;
  Fixture fixture;
  CHECK(DeviceLoader(fixture.dataset, fixture.options).warnings().empty());
  fixture.options.transform.crop = Crop{8, 6};
  CHECK(DeviceLoader(fixture.dataset, fixture.options).warnings() ==
        Loader(fixture.dataset, fixture.options).warnings());
  CHECK(DeviceLoader(fixture.dataset, fixture.options).warnings().size() == 1);
}

}  // namespace
}  // namespace precache
