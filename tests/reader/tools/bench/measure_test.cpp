// SPDX-License-Identifier: Apache-2.0
// Tests what is measured, counted and refused, but no speeds.
#include "precache/tools/measure.hpp"

#include "precache/formats/error.hpp"
#include "tests/reader/device/device_support.hpp"

namespace precache {
namespace {

using test::contains;
using test::FakeMachine;
using test::message_of;

struct Fixture {
  test::TempFolder folder;
  Dataset dataset = Dataset::open(test::make_dataset(folder.path(), {}).folder);
  LoaderOptions options;
  DeviceOptions device;
  MeasureOptions measure{.seconds = 3600, .batches = 7, .step_seconds = 0};  // ends by batches
  std::uint64_t bytes = 0;                                                   // of all shards

  Fixture() {
    options.batch_size = 4;
    options.threads = 2;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
      if (entry.path().extension() == ".tar") bytes += entry.file_size();
    }
    device.pin_shards_up_to_bytes = bytes;
  }
  [[nodiscard]] std::vector<DeviceMeasurement> paths() const {
    return measure_device_paths(dataset, options, device, measure);
  }
};

void check_counts(const LoadMeasurement& measured, std::uint64_t batches) {
  CHECK(measured.rate.batches == batches);
  CHECK(measured.rate.images == batches * 4);
  CHECK(measured.rate.seconds > 0);
  CHECK(measured.rate.images_per_second() ==
        static_cast<double>(measured.rate.images) / measured.rate.seconds);
  CHECK(measured.rate.bytes_per_second() ==
        static_cast<double>(measured.rate.bytes) / measured.rate.seconds);
}

void check_wait(const LoadMeasurement& measured, std::uint64_t steps, double step_seconds) {
  REQUIRE(measured.wait);
  CHECK(measured.wait->steps == steps);
  CHECK(measured.wait->waited_seconds > 0);
  CHECK(measured.wait->waited_seconds + static_cast<double>(steps) * step_seconds <=
        measured.wait->seconds);
  CHECK(measured.wait->share() == measured.wait->waited_seconds / measured.wait->seconds);
}

TEST_CASE("all three paths to a device are measured", "[device]") {
  const FakeMachine machine;
  Fixture fixture;
  fixture.measure.step_seconds = 1e-4;
  const auto results = fixture.paths();
  REQUIRE(results.size() == 3);
  CHECK(results[0].path == DevicePath::kStaged);
  CHECK(results[1].path == DevicePath::kStrided);
  CHECK(results[2].path == DevicePath::kGather);
  for (const DeviceMeasurement& result : results) {
    CAPTURE(name(result.path));
    CHECK(result.refusal.empty());
    check_counts(result.loading, 7);
    check_wait(result.loading, 7, 1e-4);
    const bool staged = result.path == DevicePath::kStaged;
    CHECK(result.bytes_registered == (staged ? 0 : fixture.bytes));
    // Four rows of 144 bytes and four labels; staged batches also have padding to 256 bytes.
    CHECK(result.loading.rate.bytes == 7U * (staged ? 768 + 32 : 576 + 32));
  }
  const auto calls = fake_cudart::calls();
  CHECK(calls.at("cudaMemcpy2DAsync") > 0);
  CHECK(calls.at("cudaMemcpyBatchAsync") >= 14);  // 7 batches each for rate and steps, and more
  CHECK(calls.count("cudaLaunchKernel") == 0);    // no transform
}

TEST_CASE("a path that is asked for is measured with its transform", "[device]") {
  const FakeMachine machine;
  Fixture fixture;
  fixture.options.order.shuffle = Shuffle::kFull;
  fixture.options.transform.crop = Crop{4, 4};
  fixture.options.transform.flip = true;
  fixture.options.transform.dtype = DType::kFloat16;
  for (const DevicePath path : {DevicePath::kStaged, DevicePath::kGather, DevicePath::kResident}) {
    CAPTURE(name(path));
    fixture.device.device_path = path;
    const auto before = fake_cudart::calls()["cudaLaunchKernel"];
    const DeviceMeasurement result =
        measure_device_loading(fixture.dataset, fixture.options, fixture.device, fixture.measure);
    CHECK(result.path == path);
    check_counts(result.loading, 7);
    CHECK_FALSE(result.loading.wait);
    CHECK(fake_cudart::calls()["cudaLaunchKernel"] >= before + 7);
  }
  fixture.device.device_path = DevicePath::kStrided;
  CHECK_THAT(message_of<InvalidArgument>([&] {
               (void)measure_device_loading(fixture.dataset, fixture.options, fixture.device,
                                            fixture.measure);
             }),
             contains("shuffled"));
}

TEST_CASE("impossible paths have a reason, and the others are measured", "[device]") {
  const FakeMachine machine;
  Fixture fixture;
  SECTION("a shuffled order") {
    fixture.options.order.shuffle = Shuffle::kBlock;
    const auto results = fixture.paths();
    REQUIRE(results.size() == 3);
    CHECK_THAT(results[1].refusal, contains("shuffled"));
    CHECK(results[1].path == DevicePath::kStrided);
    CHECK(results[1].loading.rate.batches == 0);
    check_counts(results[0].loading, 7);
    check_counts(results[2].loading, 7);
  }
  SECTION("shards beyond the budget") {
    fixture.device.pin_shards_up_to_bytes = fixture.bytes - 1;
    const auto results = fixture.paths();
    REQUIRE(results.size() == 3);
    check_counts(results[0].loading, 7);
    CHECK_THAT(results[1].refusal, contains("may be pinned"));
    CHECK_THAT(results[2].refusal, contains("may be pinned"));
  }
  SECTION("a driver that registers nothing") {
    fake_cudart::fail_call("cudaHostRegister", 1, cudaErrorNotSupported,
                           fake_cudart::Repeat::kForever);
    const auto results = fixture.paths();
    REQUIRE(results.size() == 3);
    check_counts(results[0].loading, 7);
    CHECK_THAT(results[1].refusal, contains("cudaErrorNotSupported"));
    CHECK_THAT(results[2].refusal, contains("cudaErrorNotSupported"));
  }
}

TEST_CASE("a device that fails while it is measured is an error", "[device]") {
  const FakeMachine machine;
  const Fixture fixture;
  for (const char* const call :
       {"cudaMemcpyAsync", "cudaMemcpy2DAsync", "cudaMemcpyBatchAsync", "cudaEventSynchronize"}) {
    CAPTURE(call);
    fake_cudart::fail_call(call, 3, cudaErrorUnknown);
    CHECK_THAT(message_of<DeviceError>([&] { (void)fixture.paths(); }), contains(call));
    CHECK(fake_cudart::report() == "");
  }
}

TEST_CASE("options that are invalid for every path are errors", "[device]") {
  const FakeMachine machine;
  Fixture fixture;
  fixture.options.transform.crop = Crop{100, 100};
  CHECK_THAT(message_of<InvalidArgument>([&] { (void)fixture.paths(); }), contains("crop"));
}

TEST_CASE("a measurement has at least one batch", "[device]") {
  const FakeMachine machine;
  Fixture fixture;
  fixture.measure = {.seconds = 0, .step_seconds = 1e-4};
  for (const DeviceMeasurement& result : fixture.paths()) {
    check_counts(result.loading, 1);
    check_wait(result.loading, 1, 1e-4);
  }
  const LoadMeasurement host = measure_loading(fixture.dataset, fixture.options, fixture.measure);
  check_counts(host, 1);
  check_wait(host, 1, 1e-4);
}

TEST_CASE("a loader without a device is measured too", "[device]") {
  Fixture fixture;
  fixture.measure.step_seconds = 1e-4;
  fixture.options.transform.crop = Crop{4, 4};
  fixture.options.transform.dtype = DType::kFloat32;
  warm_up(fixture.dataset, fixture.options, fixture.measure);
  const LoadMeasurement result = measure_loading(fixture.dataset, fixture.options, fixture.measure);
  check_counts(result, 7);
  check_wait(result, 7, 1e-4);
  CHECK(result.rate.bytes == 28U * 4 * 4 * 3 * 4);

  fixture.options.batch_size = 50;  // more than the samples
  CHECK(measure_loading(fixture.dataset, fixture.options, fixture.measure).rate.images == 350);
}

TEST_CASE("there is nothing to measure without samples", "[device]") {
  const FakeMachine machine;
  const test::TempFolder folder;
  const Fixture fixture;
  const Dataset empty = Dataset::open(test::make_dataset(folder.path(), {.shards = {0}}).folder);
  const auto says = contains("no samples");
  CHECK_THAT(message_of<InvalidArgument>(
                 [&] { (void)measure_loading(empty, fixture.options, fixture.measure); }),
             says);
  CHECK_THAT(message_of<InvalidArgument>([&] {
               (void)measure_device_paths(empty, fixture.options, fixture.device, fixture.measure);
             }),
             says);
}

TEST_CASE("the link to a device is measured only by copies", "[device]") {
  const FakeMachine machine(2);
  const MeasureOptions six{.seconds = 3600, .batches = 6};
  CHECK(measure_link(1, six) > 0);
  CHECK(fake_cudart::calls().at("cudaMemcpyAsync") ==
        7);  // including the first, which does not count
  CHECK(fake_cudart::report() == "");
  CHECK_THAT(message_of<InvalidArgument>([&] { (void)measure_link(2, six); }),
             contains("`device` must be below 2"));
  for (const char* const call : {"cudaHostAlloc", "cudaMalloc", "cudaStreamCreateWithPriority",
                                 "cudaMemcpyAsync", "cudaStreamSynchronize"}) {
    CAPTURE(call);
    fake_cudart::fail_call(call, 1, cudaErrorUnknown);
    CHECK_THAT(message_of<DeviceError>([&] { (void)measure_link(0, six); }), contains(call));
    CHECK(fake_cudart::report() == "");
  }
  fake_cudart::set_device_count(0);
  CHECK_THAT(message_of<Unsupported>([&] { (void)measure_link(0, six); }), contains("no GPU"));
}

}  // namespace
}  // namespace precache
