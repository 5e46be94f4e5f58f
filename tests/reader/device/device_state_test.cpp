// SPDX-License-Identifier: Apache-2.0
#include "precache/formats/error.hpp"
#include "tests/reader/device/device_support.hpp"

namespace precache {
namespace {

using test::by_path;
using test::Consumer;
using test::contains;
using test::epoch_of;
using test::FakeMachine;
using test::message_of;

struct Fixture {
  test::TempFolder folder;
  test::MadeDataset made = test::make_dataset(folder.path(), {.shards = {20, 11, 9}});
  Dataset dataset = Dataset::open(made.folder);
  LoaderOptions options;

  Fixture() {
    options.batch_size = 6;
    options.order.shuffle = Shuffle::kFull;
    options.threads = 2;
    options.transform.flip = true;
    options.transform.crop = Crop{5, 5};
    options.last_batch = LastBatch::kKeep;
  }
};

TEST_CASE("the state counts the batches that were returned, not those being copied", "[device]") {
  const FakeMachine machine;
  const Fixture fixture;
  Loader host(fixture.dataset, fixture.options);
  DeviceLoader loader(fixture.dataset, fixture.options);
  const test::UserStream stream;
  for (int i = 0; i < 20; ++i) {
    CHECK(loader.state() == host.state());
    CHECK(loader.batches_left() == host.batches_left());
    CHECK(loader.epoch() == host.epoch());
    const auto expected = host.next();
    auto batch = loader.next();
    REQUIRE(batch.has_value() == expected.has_value());
    if (!batch) continue;
    CHECK(std::ranges::equal(batch->samples(), expected->samples()));
    batch->release(stream.get());
  }
  CHECK(loader.batches_per_epoch() == host.batches_per_epoch());
  CHECK(loader.stats().batches == host.stats().batches);
}

TEST_CASE("a run resumes from any state, with or without a device", "[device]") {
  const FakeMachine machine;
  const Fixture fixture;
  for (const DevicePath path : {DevicePath::kStaged, DevicePath::kAuto}) {
    for (int before = 0; before < 8; ++before) {
      CAPTURE(name(path), before);
      DeviceLoader loader(fixture.dataset, fixture.options, by_path(path));
      Consumer consumer;
      for (int i = 0; i < before; ++i) {
        if (auto batch = loader.next()) consumer.take(std::move(*batch));
      }
      const OrderState state = loader.state();
      Loader host(fixture.dataset, fixture.options);
      host.resume(state);
      const auto expected = epoch_of(host);
      // After the last batch of an epoch, the state is the beginning of the next one.
      if (loader.batches_left() == 0) CHECK_FALSE(loader.next());
      const auto ahead = epoch_of(loader);
      loader.resume(state);
      CHECK(loader.state() == state);
      const bool equal = epoch_of(loader) == expected && ahead == expected;
      CHECK(equal);
      DeviceLoader other(fixture.dataset, fixture.options);
      other.resume(state);
      const bool other_equal = epoch_of(other) == expected;
      CHECK(other_equal);
    }
  }
}

TEST_CASE("a state brings its own seed", "[device]") {
  const FakeMachine machine;
  Fixture fixture;
  Loader host(fixture.dataset, fixture.options);
  DeviceLoader loader(fixture.dataset, fixture.options);
  OrderState state = loader.state();
  state.seed = 77;
  state.epoch = 5;
  state.position = 12;
  host.resume(state);
  loader.resume(state);
  const bool equal = epoch_of(loader) == epoch_of(host);
  CHECK(equal);
  state.samples = 1;
  const OrderState before = loader.state();
  CHECK_THROWS_AS(loader.resume(state), InvalidArgument);
  CHECK(loader.state() == before);
  const bool continues = epoch_of(loader) == epoch_of(host);
  CHECK(continues);
}

TEST_CASE("set_epoch works at any time", "[device]") {
  const FakeMachine machine;
  const Fixture fixture;
  Loader host(fixture.dataset, fixture.options);
  DeviceLoader loader(fixture.dataset, fixture.options);
  { const auto batch = loader.next(); }
  for (const std::uint64_t epoch : {0U, 3U, 3U, 1U}) {
    host.set_epoch(epoch);
    loader.set_epoch(epoch);
    CHECK(loader.epoch() == epoch);
    const bool equal = epoch_of(loader) == epoch_of(host);
    CHECK(equal);
  }
  // At the beginning of an epoch that is already being read, nothing is read twice.
  const std::uint64_t copies = loader.stats().staged + loader.stats().gathered;
  loader.set_epoch(2);
  CHECK(loader.stats().staged + loader.stats().gathered == copies);
  CHECK(loader.epoch() == 2);
}

TEST_CASE("epochs without a batch end at once", "[device]") {
  const FakeMachine machine;
  Fixture fixture;
  fixture.options.batch_size = 100;
  fixture.options.last_batch = LastBatch::kDrop;
  DeviceLoader loader(fixture.dataset, fixture.options);
  for (std::uint64_t epoch = 0; epoch < 5; ++epoch) {
    CHECK(loader.epoch() == epoch);
    CHECK_FALSE(loader.next().has_value());
  }
}

TEST_CASE("a shard that cannot be read is an error in place of its batch", "[device]") {
  const FakeMachine machine;
  Fixture fixture;
  fixture.options.order.shuffle = Shuffle::kNone;
  fixture.options.batch_size = 5;
  DeviceLoader loader(fixture.dataset, fixture.options, by_path(DevicePath::kStaged));
  test::cut_file(fixture.made.shards[1], 100);
  Consumer consumer;
  for (int i = 0; i < 4; ++i) consumer.take(loader.next().value());  // the first shard
  const OrderState state = loader.state();
  const std::string error = message_of<CorruptData>([&] { (void)loader.next(); });
  CHECK_THAT(error, contains(fixture.made.shards[1].filename().string()));
  CHECK(message_of<CorruptData>([&] { (void)loader.next(); }) == error);
  CHECK(loader.state() == state);
  OrderState later = state;
  later.position = 31;
  loader.resume(later);
  consumer.take(loader.next().value());
  CHECK(consumer.finish().back().samples == std::vector<std::uint64_t>{31, 32, 33, 34, 35});
}

}  // namespace
}  // namespace precache
