// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "precache/formats/error.hpp"
#include "tests/reader/device/device_support.hpp"

namespace precache {
namespace {

using test::epoch_of;
using test::FakeMachine;
using test::make_dataset;

const Normalization kImagenet{{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};

DeviceOptions resident() { return test::by_path(DevicePath::kResident); }

LoaderOptions cropped(Shuffle shuffle) {
  LoaderOptions options;
  options.batch_size = 3;
  options.order = {shuffle, 2, 2};
  options.seed = 5;
  options.last_batch = LastBatch::kKeep;
  options.threads = 2;
  options.transform.crop = Crop{5, 4};
  options.transform.flip = true;
  options.transform.normalize = kImagenet;
  options.transform.dtype = DType::kFloat16;
  return options;
}

struct Fixture {
  FakeMachine machine;
  test::TempFolder folder;
  Dataset dataset = Dataset::open(make_dataset(folder.path(), {}).folder);
};

TEST_CASE("a resident dataset gives the batches of a Loader for subsets and weights",
          "[device][resident]") {
  const Fixture fixture;
  const std::uint64_t samples = fixture.dataset.size();
  REQUIRE(samples >= 8);
  LoaderOptions subset = cropped(Shuffle::kFull);
  subset.subset = std::vector<std::uint64_t>{7, 1, 1, 4, samples - 1, 0, 2};
  LoaderOptions weighted = cropped(Shuffle::kNone);
  weighted.weights.assign(samples, 0.25);
  weighted.weights[2] = 8;
  weighted.weights[3] = 0;
  LoaderOptions both = subset;
  both.order.shuffle = Shuffle::kNone;
  both.weights = {1, 0, 3, 0.5, 2, 0, 1};
  for (const LoaderOptions& options : {subset, weighted, both}) {
    Loader expected(fixture.dataset, options);
    DeviceLoader loader(fixture.dataset, options, resident());
    for (int epoch = 0; epoch < 3; ++epoch) {
      const bool equal = epoch_of(loader) == epoch_of(expected);
      CHECK(equal);
    }
  }
}

std::uint64_t host_work() {
  std::uint64_t count = 0;
  for (const auto& [name, calls] : fake_cudart::calls()) {
    const bool is_work = name.starts_with("cudaMemcpy") || name.starts_with("cudaMalloc") ||
                         name.starts_with("cudaHost") || name.ends_with("Synchronize");
    if (is_work) count += calls;
  }
  return count;
}

TEST_CASE("the host copies nothing for the batches of a resident dataset", "[device][resident]") {
  const Fixture fixture;
  LoaderOptions with_list = cropped(Shuffle::kFull);
  with_list.transform.crop.reset();
  with_list.transform.flip = false;
  with_list.transform.augmentation = {
      {RandomResizedCrop{.height = 5, .width = 4},
       ColorJitter{.brightness = Range{0.5, 1.5}, .hue = Range{-0.2, 0.2}}}};
  for (const LoaderOptions& options : {cropped(Shuffle::kFull), with_list}) {
    DeviceLoader loader(fixture.dataset, options, resident());
    const std::uint64_t row_bytes = fixture.dataset.spec().size_bytes();
    CHECK(loader.stats().bytes_resident == fixture.dataset.size() * (row_bytes + 8));
    const std::uint64_t work_before = host_work();
    const std::uint64_t launches_before = fake_cudart::calls()["cudaLaunchKernel"];
    const test::UserStream stream;
    std::uint64_t batches = 0;
    for (int epoch = 0; epoch < 2; ++epoch) {
      while (auto batch = loader.next()) {
        CHECK(batch->path() == DevicePath::kResident);
        batch->wait_on(stream.get());
        batch->release(stream.get());
        ++batches;
      }
    }
    CHECK(batches == 2 * loader.batches_per_epoch());
    const DeviceStats stats = loader.stats();
    CHECK(stats.batches == batches);
    CHECK(stats.resident >= batches);
    CHECK(stats.bytes_copied == 0);
    CHECK(host_work() == work_before);
    const std::uint64_t launches = fake_cudart::calls()["cudaLaunchKernel"] - launches_before;
    CHECK(launches % stats.resident == 0);  // as many for each batch
    if (options.transform.augmentation.empty()) CHECK(launches == 2 * stats.resident);
  }
}

TEST_CASE("a resident loader resumes where a Loader stopped", "[device][resident]") {
  const Fixture fixture;
  const LoaderOptions options = cropped(Shuffle::kBlock);
  Loader expected(fixture.dataset, options);
  (void)epoch_of(expected);
  (void)expected.next();
  DeviceLoader loader(fixture.dataset, options, resident());
  {
    auto dropped = loader.next();  // batches of epoch 0 are launched ahead
    dropped->release(nullptr);
  }
  loader.resume(expected.state());
  CHECK(loader.state() == expected.state());
  CHECK(loader.batches_left() == expected.batches_left());
  for (int epoch = 1; epoch < 3; ++epoch) {
    const bool equal = epoch_of(loader) == epoch_of(expected);
    CHECK(equal);
    CHECK(loader.state() == expected.state());
  }
}

TEST_CASE("samples of a resident batch can be listed after its loader is gone",
          "[device][resident]") {
  const Fixture fixture;
  LoaderOptions options = cropped(Shuffle::kFull);
  options.subset = std::vector<std::uint64_t>{3, 5, 6};
  std::optional<DeviceBatch> batch;
  {
    DeviceLoader loader(fixture.dataset, options, resident());
    batch = loader.next();
  }
  std::vector<std::uint64_t> samples(batch->samples().begin(), batch->samples().end());
  std::ranges::sort(samples);
  CHECK(samples == *options.subset);
  batch->release(nullptr);
}

TEST_CASE("a dataset that is larger than the budget is refused with both numbers",
          "[device][resident]") {
  const Fixture fixture;
  DeviceOptions device = resident();
  const std::uint64_t needed = fixture.dataset.size() * (fixture.dataset.spec().size_bytes() + 8);
  device.resident_up_to_bytes = needed;
  CHECK_NOTHROW(DeviceLoader(fixture.dataset, cropped(Shuffle::kNone), device));
  device.resident_up_to_bytes = needed - 1;
  const std::string message = test::message_of<InvalidArgument>(
      [&] { DeviceLoader(fixture.dataset, cropped(Shuffle::kNone), device); });
  CHECK(message.find(std::to_string(needed)) != std::string::npos);
  CHECK(message.find(std::to_string(needed - 1)) != std::string::npos);
}

TEST_CASE("a consumer that holds all resident batches is told so", "[device][resident]") {
  const Fixture fixture;
  DeviceOptions device = resident();
  device.device_batches = 2;
  DeviceLoader loader(fixture.dataset, cropped(Shuffle::kNone), device);
  auto first = loader.next();
  auto second = loader.next();
  CHECK_THROWS_AS(loader.next(), InvalidArgument);
  first->release(nullptr);
  CHECK(loader.next().has_value());
  second->release(nullptr);
}

}  // namespace
}  // namespace precache
