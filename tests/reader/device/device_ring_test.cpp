// SPDX-License-Identifier: Apache-2.0
// Tests who may use the memory of a batch, and when.
#include <array>
#include <chrono>
#include <cstring>
#include <thread>

#include "precache/formats/error.hpp"
#include "reader/device/dlpack.hpp"
#include "tests/reader/device/device_support.hpp"

namespace precache {
namespace {

using test::by_path;
using test::Bytes;
using test::Consumer;
using test::contains;
using test::epoch_of;
using test::FakeMachine;
using test::message_of;
using test::SeenBatch;
using test::UserStream;

struct Fixture {
  test::TempFolder folder;
  Dataset dataset =
      Dataset::open(test::make_dataset(folder.path(), {.shards = {20, 11, 9}}).folder);
  LoaderOptions options;

  Fixture() {
    options.batch_size = 4;
    options.order.shuffle = Shuffle::kFull;
    options.threads = 2;
    options.transform.dtype = DType::kFloat32;
  }
  [[nodiscard]] std::vector<SeenBatch> expected() const {
    Loader loader(dataset, options);
    return epoch_of(loader);
  }
};

Bytes images_of(const DeviceBatch& batch) {
  Bytes bytes(batch.size() * batch.spec().size_bytes());
  int before = 0;
  REQUIRE(cudaGetDevice(&before) == cudaSuccess);
  REQUIRE(cudaSetDevice(batch.device()) == cudaSuccess);
  REQUIRE(cudaMemcpy(bytes.data(), batch.images(), bytes.size(), cudaMemcpyDeviceToHost) ==
          cudaSuccess);
  REQUIRE(cudaSetDevice(before) == cudaSuccess);
  return bytes;
}

TEST_CASE("a ring of any size gives the same batches", "[device]") {
  const FakeMachine machine;
  Fixture fixture;
  const auto expected = fixture.expected();
  for (const std::size_t ring : {1U, 2U, 3U, 7U, 20U}) {
    for (const std::size_t prefetch : {1U, 4U}) {
      for (const unsigned delay_us : {0U, 500U}) {
        CAPTURE(ring, prefetch, delay_us);
        fake_cudart::set_delays(ring, delay_us);
        fixture.options.prefetch = prefetch;
        DeviceOptions device = by_path(DevicePath::kAuto);
        device.device_batches = ring;
        DeviceLoader loader(fixture.dataset, fixture.options, device);
        const bool equal = epoch_of(loader) == expected;
        CHECK(equal);
      }
    }
  }
}

TEST_CASE("memory is used again only after the consumer's stream is done with it", "[device]") {
  const FakeMachine machine;
  const Fixture fixture;
  for (const DevicePath path : {DevicePath::kStaged, DevicePath::kGather}) {
    DeviceLoader loader(fixture.dataset, fixture.options, by_path(path));
    Consumer consumer;
    // The stream is held, so nothing that it will read may be overwritten. next() continues until
    // the ring is full of batches that wait for the stream.
    fake_cudart::hold(consumer.stream());
    for (int i = 0; i < 4; ++i) consumer.take(loader.next().value());
    fake_cudart::let_go(consumer.stream());
    while (auto batch = loader.next()) consumer.take(std::move(*batch));
    const bool equal = consumer.finish() == fixture.expected();
    CHECK(equal);
  }
}

TEST_CASE("a copy waits for the last user of its place, not for steps that come later",
          "[device]") {
  const FakeMachine machine;
  const Fixture fixture;
  const auto expected = fixture.expected();
  for (const DevicePath path : {DevicePath::kStaged, DevicePath::kGather}) {
    CAPTURE(name(path));
    DeviceLoader loader(fixture.dataset, fixture.options, by_path(path));
    const UserStream stream;
    std::vector<DeviceBatch> ring;
    for (int i = 0; i < 3; ++i) ring.push_back(loader.next().value());
    ring[0].wait_on(stream.get());
    ring[0].release(stream.get());
    REQUIRE(cudaStreamSynchronize(stream.get()) == cudaSuccess);
    // The host runs ahead: two more steps are queued when only the first is done.
    fake_cudart::hold(stream.get());
    for (std::size_t i = 1; i < 3; ++i) {
      ring[i].wait_on(stream.get());
      ring[i].release(stream.get());
    }
    const DeviceBatch fourth = loader.next().value();
    const auto ready = static_cast<cudaEvent_t>(fourth.ready_event());
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (cudaEventQuery(ready) == cudaErrorNotReady &&
           std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    CHECK(cudaEventQuery(ready) == cudaSuccess);
    (void)cudaGetLastError();
    fake_cudart::let_go(stream.get());
    fourth.wait();
    const bool equal = images_of(fourth) == expected[3].images;
    CHECK(equal);
  }
}

TEST_CASE("memory is used again only after the work of all streams that had its tensors",
          "[device]") {
  const FakeMachine machine;
  const Fixture fixture;
  const auto expected = fixture.expected();
  DeviceOptions device = by_path(DevicePath::kStaged);
  device.device_batches = 1;
  DeviceLoader loader(fixture.dataset, fixture.options, device);
  const std::array<UserStream, 3> streams;
  const std::size_t bytes = expected[0].images.size();
  std::array<void*, 12> seen{};
  for (std::size_t i = 0; i < seen.size(); i += 3) {
    auto batch = loader.next();
    const cudaStream_t late = streams[i / 3 % 3].get();  // each in turn
    fake_cudart::hold(late);
    for (std::size_t k = 0; k < 3; ++k) {
      const cudaStream_t stream = streams[k].get();
      DLManagedTensor* const tensor = batch->to_dlpack(DeviceBatch::Part::kImages, stream);
      REQUIRE(cudaHostAlloc(&seen[i + k], bytes, cudaHostAllocDefault) == cudaSuccess);
      REQUIRE(cudaMemcpyAsync(seen[i + k], tensor->dl_tensor.data, bytes, cudaMemcpyDeviceToHost,
                              stream) == cudaSuccess);
      tensor->deleter(tensor);
    }
    batch.reset();
    fake_cudart::let_go(late);
  }
  CHECK(fake_cudart::calls().count("cudaDeviceSynchronize") == 0);
  for (const UserStream& stream : streams) {
    REQUIRE(cudaStreamSynchronize(stream.get()) == cudaSuccess);
  }
  for (std::size_t i = 0; i < seen.size(); ++i) {
    CAPTURE(i);
    const bool equal = std::memcmp(seen[i], expected[i / 3].images.data(), bytes) == 0;
    CHECK(equal);
    CHECK(cudaFreeHost(seen[i]) == cudaSuccess);
  }
}

TEST_CASE("a batch does not change while it is held", "[device]") {
  const FakeMachine machine;
  const Fixture fixture;
  const auto expected = fixture.expected();
  DeviceLoader loader(fixture.dataset, fixture.options);
  const DeviceBatch held = loader.next().value();
  held.wait();
  Consumer consumer;
  while (auto batch = loader.next()) consumer.take(std::move(*batch));
  const bool same = images_of(held) == expected[0].images;
  CHECK(same);
  const auto rest = consumer.finish();
  const bool equal = std::equal(rest.begin(), rest.end(), expected.begin() + 1, expected.end());
  CHECK(equal);
}

TEST_CASE("a consumer that holds the whole ring gets an error", "[device]") {
  const FakeMachine machine;
  const Fixture fixture;
  DeviceLoader loader(fixture.dataset, fixture.options);
  std::vector<DeviceBatch> held;
  for (int i = 0; i < 3; ++i) held.push_back(loader.next().value());
  const OrderState state = loader.state();
  CHECK_THAT(message_of<InvalidArgument>([&] { (void)loader.next(); }), contains("all 3 batches"));
  CHECK(loader.state() == state);
  const UserStream stream;
  held[1].release(stream.get());
  const DeviceBatch fourth = loader.next().value();
  fourth.wait();
  const bool equal = images_of(fourth) == fixture.expected()[3].images;
  CHECK(equal);
}

TEST_CASE("a released batch can no longer be used", "[device]") {
  const FakeMachine machine;
  const Fixture fixture;
  DeviceLoader loader(fixture.dataset, fixture.options);
  const UserStream stream;
  DeviceBatch batch = loader.next().value();
  batch.release(stream.get());
  CHECK_THROWS_AS(batch.release(stream.get()), InvalidArgument);
  CHECK_THROWS_AS(batch.wait_on(stream.get()), InvalidArgument);
  CHECK_THROWS_AS(batch.wait(), InvalidArgument);
  CHECK_THROWS_AS(batch.to_dlpack(DeviceBatch::Part::kImages, stream.get()), InvalidArgument);
}

TEST_CASE("a batch that is dropped without a release waits for the device", "[device]") {
  const FakeMachine machine;
  const Fixture fixture;
  const auto expected = fixture.expected();
  DeviceLoader loader(fixture.dataset, fixture.options);
  const UserStream stream;
  std::vector<Bytes> seen;
  while (auto batch = loader.next()) {
    Bytes& bytes = seen.emplace_back(batch->size() * batch->spec().size_bytes());
    batch->wait_on(stream.get());
    // Pageable memory is fine for this direction: the call may wait, the batch is still used.
    REQUIRE(cudaMemcpyAsync(bytes.data(), batch->images(), bytes.size(), cudaMemcpyDeviceToHost,
                            stream.get()) == cudaSuccess);
    batch.reset();
  }
  REQUIRE(seen.size() == expected.size());
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const bool equal = seen[i] == expected[i].images;
    CHECK(equal);
  }
  CHECK(fake_cudart::calls().at("cudaDeviceSynchronize") == expected.size());
}

TEST_CASE("a batch outlives its loader", "[device]") {
  const FakeMachine machine;
  const Fixture fixture;
  for (const DevicePath path : {DevicePath::kStaged, DevicePath::kGather}) {
    std::optional<DeviceBatch> batch;
    {
      DeviceLoader loader(fixture.dataset, fixture.options, by_path(path));
      batch = loader.next();
      const std::optional<DeviceBatch> dropped = loader.next();
    }
    batch->wait();
    const bool equal = images_of(*batch) == fixture.expected()[0].images;
    CHECK(equal);
  }
}

TEST_CASE("memory stays until the last stream is done with it, even after the loader", "[device]") {
  const FakeMachine machine;
  const Fixture fixture;
  fake_cudart::set_delays(3, 2000);
  Consumer consumer;
  {
    std::optional<DeviceBatch> batch;
    {
      DeviceLoader loader(fixture.dataset, fixture.options);
      batch = loader.next();
    }
    consumer.take(std::move(*batch));
  }
  const bool equal = consumer.finish().at(0) == fixture.expected()[0];
  CHECK(equal);
}

TEST_CASE("batches may be released on any thread", "[device][concurrency]") {
  const FakeMachine machine;
  const Fixture fixture;
  DeviceOptions device = by_path(DevicePath::kAuto);
  device.device_batches = 6;
  DeviceLoader loader(fixture.dataset, fixture.options, device);
  const UserStream stream;
  std::vector<std::thread> threads;
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (;;) {
      auto batch = loader.next();
      if (!batch) break;
      threads.emplace_back([&stream, mine = std::move(*batch)]() mutable {
        mine.wait_on(stream.get());
        mine.release(stream.get());
      });
      if (threads.size() == 5) {
        for (auto& thread : threads) thread.join();
        threads.clear();
      }
    }
  }
  for (auto& thread : threads) thread.join();
  CHECK(loader.stats().batches == 30);
}

TEST_CASE("each device has its own loader, and the caller's device stays", "[device]") {
  const FakeMachine machine(3);
  const Fixture fixture;
  const auto expected = fixture.expected();
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  DeviceOptions options = by_path(DevicePath::kAuto);
  options.device = 2;
  DeviceLoader last(fixture.dataset, fixture.options, options);
  options.device = 0;
  DeviceLoader first(fixture.dataset, fixture.options, options);
  std::vector<bool> equal;
  for (std::size_t i = 0;; ++i) {
    auto a = first.next();
    auto b = last.next();
    REQUIRE(a.has_value() == b.has_value());
    if (!a) break;
    CHECK(a->device() == 0);
    CHECK(b->device() == 2);
    a->wait();
    b->wait();
    equal.push_back(images_of(*a) == expected[i].images && images_of(*b) == expected[i].images);
    a->release(nullptr);  // the legacy stream of its device
    b->release(nullptr);
    int current = -1;
    CHECK(cudaGetDevice(&current) == cudaSuccess);
    CHECK(current == 1);
  }
  CHECK(equal == std::vector<bool>(expected.size(), true));
}

TEST_CASE("DLPack tensors keep the memory of their batch", "[device]") {
  const FakeMachine machine;
  Fixture fixture;
  fixture.options.transform.dtype = DType::kBfloat16;
  fixture.options.transform.layout = Layout::kHwc;
  const auto expected = fixture.expected();
  DeviceOptions device = by_path(DevicePath::kAuto);
  device.device_batches = 1;
  DeviceLoader loader(fixture.dataset, fixture.options, device);
  const UserStream stream;
  for (const bool versioned : {false, true}) {
    auto batch = loader.next();
    const std::size_t number = loader.stats().batches - 1;
    DLManagedTensor* labels = batch->to_dlpack(DeviceBatch::Part::kLabels, stream.get());
    DLManagedTensor* images = nullptr;
    DLManagedTensorVersioned* images1 = nullptr;
    versioned ? void(images1 = batch->to_dlpack_versioned(DeviceBatch::Part::kImages, stream.get()))
              : void(images = batch->to_dlpack(DeviceBatch::Part::kImages, stream.get()));
    CHECK_THAT(message_of<InvalidArgument>([&] { batch->release(stream.get()); }),
               contains("still held"));
    void* const address = batch->images();
    batch.reset();
    CHECK_THROWS_AS(loader.next(), InvalidArgument);  // the tensors hold the ring's only place

    const DLTensor& tensor = versioned ? images1->dl_tensor : images->dl_tensor;
    CHECK(tensor.data == address);
    CHECK(tensor.byte_offset == 0);
    CHECK(tensor.device.device_type == 2);
    CHECK(tensor.device.device_id == 0);
    CHECK(tensor.dtype.code == 4);
    CHECK(tensor.dtype.bits == 16);
    CHECK(tensor.dtype.lanes == 1);
    REQUIRE(tensor.ndim == 4);
    CHECK(std::vector(tensor.shape, tensor.shape + 4) == std::vector<std::int64_t>{4, 8, 6, 3});
    CHECK(std::vector(tensor.strides, tensor.strides + 4) ==
          std::vector<std::int64_t>{144, 18, 3, 1});
    REQUIRE(labels->dl_tensor.ndim == 1);
    CHECK(labels->dl_tensor.dtype.code == 0);
    CHECK(labels->dl_tensor.dtype.bits == 64);
    CHECK(labels->dl_tensor.shape[0] == 4);
    if (versioned) CHECK(images1->version.major == 1);

    Bytes bytes(expected[number].images.size());
    std::vector<std::int64_t> values(4);
    REQUIRE(cudaMemcpyAsync(bytes.data(), tensor.data, bytes.size(), cudaMemcpyDeviceToHost,
                            stream.get()) == cudaSuccess);
    REQUIRE(cudaMemcpyAsync(values.data(), labels->dl_tensor.data, 32, cudaMemcpyDeviceToHost,
                            stream.get()) == cudaSuccess);
    versioned ? images1->deleter(images1) : images->deleter(images);
    std::thread([&] { labels->deleter(labels); }).join();
    REQUIRE(cudaStreamSynchronize(stream.get()) == cudaSuccess);
    const bool equal = bytes == expected[number].images;
    CHECK(equal);
    CHECK(values == expected[number].labels);
  }
  CHECK(fake_cudart::calls().count("cudaDeviceSynchronize") == 0);
}

TEST_CASE("a stream that has two tensors of a batch is waited for once", "[device]") {
  const FakeMachine machine;
  const Fixture fixture;
  DeviceLoader loader(fixture.dataset, fixture.options);
  const UserStream stream;
  auto batch = loader.next();
  DLManagedTensor* const images = batch->to_dlpack(DeviceBatch::Part::kImages, stream.get());
  DLManagedTensor* const labels = batch->to_dlpack(DeviceBatch::Part::kLabels, stream.get());
  const std::uint64_t records = fake_cudart::calls().at("cudaEventRecord");
  images->deleter(images);
  labels->deleter(labels);
  batch->release(stream.get());
  CHECK(fake_cudart::calls().at("cudaEventRecord") == records + 1);
}

TEST_CASE("copies have priority, and the host sleeps while it waits for them", "[device]") {
  const FakeMachine machine;
  const Fixture fixture;
  const UserStream stream;
  DeviceLoader loader(fixture.dataset, fixture.options);
  int least = 0;
  int greatest = 0;
  REQUIRE(cudaDeviceGetStreamPriorityRange(&least, &greatest) == cudaSuccess);
  CHECK(fake_cudart::stream_priorities(0) == std::vector{greatest, least});
  const auto batch = loader.next();
  const unsigned flags = fake_cudart::event_flags(static_cast<cudaEvent_t>(batch->ready_event()));
  CHECK(flags == (cudaEventBlockingSync | cudaEventDisableTiming));
}

TEST_CASE("a loader can be moved", "[device]") {
  const FakeMachine machine;
  const Fixture fixture;
  DeviceLoader first(fixture.dataset, fixture.options);
  DeviceLoader loader = std::move(first);
  DeviceLoader other(fixture.dataset, fixture.options);
  loader = std::move(other);
  const bool equal = epoch_of(loader) == fixture.expected();
  CHECK(equal);
}

}  // namespace
}  // namespace precache
