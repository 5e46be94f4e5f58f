// SPDX-License-Identifier: Apache-2.0
// Tests how a loader stops, resumes, fails and ends.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <thread>

#include "precache/formats/error.hpp"
#include "precache/reader/loader.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/datasets.hpp"

namespace precache {
namespace {

using test::below;
using test::Bytes;
using test::MadeDataset;
using test::make_dataset;
using test::Random;
using test::same_bytes;
using test::TempFolder;

LoaderOptions options_of(Shuffle shuffle, LastBatch last_batch, std::uint64_t batch_size,
                         unsigned threads = 2) {
  LoaderOptions options;
  options.order = {shuffle, 3, 2};
  options.last_batch = last_batch;
  options.batch_size = batch_size;
  options.threads = threads;
  options.prefetch = 2;
  options.seed = 5;
  return options;
}

bool is_right(const Batch& batch, const MadeDataset& made) {
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const test::Sample& sample = made.samples[batch.samples()[i]];
    if (!same_bytes(batch[i], sample.tensor) || batch.labels()[i] != sample.name.label)
      return false;
  }
  return true;
}

std::vector<std::uint64_t> epoch_of(Loader& loader) {
  std::vector<std::uint64_t> samples;
  while (const auto batch = loader.next()) {
    samples.insert(samples.end(), batch->samples().begin(), batch->samples().end());
  }
  return samples;
}

/// Reads one epoch with worlds of random size; each resumes where the previous one stopped. Returns
/// how often each sample was returned.
std::map<std::uint64_t, int> served(const Dataset& dataset, const MadeDataset& made,
                                    Shuffle shuffle, LastBatch last_batch, Random& random) {
  std::map<std::uint64_t, int> counts;
  OrderState state;
  bool is_begun = false;
  for (bool is_over = false; !is_over;) {
    const std::uint64_t world = 1 + below(random, 3);
    LoaderOptions options = options_of(shuffle, last_batch, 1 + below(random, 4),
                                       static_cast<unsigned>(1 + below(random, 3)));
    options.world_size = world;
    options.seed = is_begun ? random() : 5;  // the seed of the state is used
    std::vector<Loader> ranks;
    for (options.rank = 0; options.rank < world; ++options.rank) {
      ranks.emplace_back(dataset, options);
      if (is_begun) ranks.back().resume(OrderState::from_json(state.to_json()));
    }
    is_over = ranks[0].epoch() != 0;  // the rest does not fill a step of these ranks
    for (std::uint64_t steps = 1 + below(random, 3); steps > 0 && !is_over; --steps) {
      REQUIRE(ranks[0].batches_left() != 0);
      for (Loader& rank : ranks) {
        REQUIRE(rank.epoch() == 0);
        if (rank.batches_left() == 0) continue;  // some ranks may have one less
        const auto batch = rank.next();
        REQUIRE(batch);
        REQUIRE(is_right(*batch, made));
        for (const std::uint64_t sample : batch->samples()) ++counts[sample];
      }
      state = ranks[0].state();
      is_over = state.epoch != 0;
    }
    is_begun = true;
  }
  return counts;
}

TEST_CASE("an epoch with changing worlds returns every sample once",
          "[reader][loader][concurrency]") {
  const TempFolder folder;
  const MadeDataset made = make_dataset(folder.path(), {.shards = {17, 1, 0, 25}});
  const Dataset dataset = Dataset::open(made.folder);
  Random random(11);
  for (const Shuffle shuffle : {Shuffle::kNone, Shuffle::kBlock, Shuffle::kFull}) {
    for (int round = 0; round < 12; ++round) {
      CAPTURE(name(shuffle), round);
      const auto kept = served(dataset, made, shuffle, LastBatch::kKeep, random);
      CHECK(kept.size() == 43);
      for (const auto& [sample, times] : kept) CHECK(times == 1);
      const auto dropped = served(dataset, made, shuffle, LastBatch::kDrop, random);
      CHECK(dropped.size() > 43 - 3 * 4);  // the last world has at most 3 ranks of 4
      for (const auto& [sample, times] : dropped) CHECK(times == 1);
    }
  }
}

TEST_CASE("the state counts the batches that were returned, not those filled ahead",
          "[reader][loader]") {
  const TempFolder folder;
  const MadeDataset made = make_dataset(folder.path(), {.shards = {20}});
  Loader loader(Dataset::open(made.folder), options_of(Shuffle::kFull, LastBatch::kKeep, 6));
  std::this_thread::sleep_for(std::chrono::milliseconds(30));  // until the ring is full
  CHECK(loader.state() == OrderState{20, {Shuffle::kFull, 3, 2}, 5, 0, 0});
  for (const std::uint64_t position : {6, 12, 18}) {
    CHECK(loader.next());
    CHECK(loader.state().position == position);
    CHECK(loader.state().epoch == 0);
  }
  CHECK(loader.next());
  CHECK(loader.epoch() == 0);
  CHECK(loader.batches_left() == 0);
  // A state after the last batch is the beginning of the next epoch.
  CHECK(loader.state() == OrderState{20, {Shuffle::kFull, 3, 2}, 5, 1, 0});
  CHECK_FALSE(loader.next());
  CHECK(loader.epoch() == 1);
  CHECK(loader.state() == OrderState{20, {Shuffle::kFull, 3, 2}, 5, 1, 0});
}

TEST_CASE("a resumed loader continues with the seed and order of the state", "[reader][loader]") {
  const TempFolder folder;
  const MadeDataset made = make_dataset(folder.path(), {.shards = {10, 13}});
  const Dataset dataset = Dataset::open(made.folder);
  LoaderOptions options = options_of(Shuffle::kFull, LastBatch::kKeep, 5);
  options.transform.flip = true;
  Loader whole(dataset, options);
  std::vector<Bytes> expected;
  OrderState state;
  for (int i = 0; whole.epoch() < 2; ++i) {
    const auto batch = whole.next();
    if (i == 2) state = whole.state();
    if (i > 2 && batch) expected.emplace_back(batch->data(), batch->data() + batch->size() * 144);
  }
  options.order.shuffle = Shuffle::kNone;
  options.seed = 99;
  options.threads = 1;
  Loader other(dataset, options);
  REQUIRE(other.next());
  other.resume(state);
  CHECK(other.state() == state);
  std::size_t at = 0;
  while (other.epoch() < 2) {
    const auto batch = other.next();
    if (!batch) continue;
    REQUIRE(at < expected.size());
    CHECK(same_bytes({batch->data(), batch->size() * 144}, expected[at++]));
  }
  CHECK(at == expected.size());

  state.samples = 24;
  CHECK_THAT(test::message_of<InvalidArgument>([&] { other.resume(state); }),
             test::contains("24") && test::contains("23"));
  state = {23, {Shuffle::kFull, 3, 2}, 5, 0, 24};
  CHECK_THROWS_AS(other.resume(state), InvalidArgument);
  const OrderState before = other.state();
  state = {23, {Shuffle::kBlock, 0, 2}, 5, 0, 3};
  CHECK_THROWS_AS(other.resume(state), InvalidArgument);
  CHECK(other.state() == before);  // a refused state changes nothing
  state = {23, {}, 5, 4, 23};      // at the end of epoch 4
  other.resume(state);
  CHECK(other.epoch() == 5);
  CHECK(other.batches_left() == other.batches_per_epoch());
  options.last_batch = LastBatch::kDrop;
  Loader dropping(dataset, options);
  dropping.resume({23, {}, 5, 4, 20});  // three samples are left, and a batch has five
  CHECK(dropping.epoch() == 5);
  dropping.resume({23, {}, 5, 4, 18});
  CHECK(dropping.epoch() == 4);
  CHECK(dropping.batches_left() == 1);
  options.last_batch = LastBatch::kKeep;
  options.world_size = 4;
  options.rank = 3;
  Loader last_rank(dataset, options);
  last_rank.resume({23, {}, 5, 4, 21});  // two samples are left, which are those of ranks 0 and 1
  CHECK(last_rank.epoch() == 4);         // as on the other ranks
  CHECK(last_rank.batches_left() == 0);
}

TEST_CASE("a subset is read in its own order", "[reader][loader]") {
  const TempFolder folder;
  const MadeDataset made = make_dataset(folder.path(), {.shards = {10, 13}});
  const Dataset dataset = Dataset::open(made.folder);
  LoaderOptions options = options_of(Shuffle::kNone, LastBatch::kKeep, 3);
  options.subset = {22, 0, 7, 7, 12};
  Loader loader(dataset, options);
  CHECK(loader.batches_per_epoch() == 2);
  CHECK(epoch_of(loader) == *options.subset);
  CHECK(loader.state().samples == 5);
  options.order.shuffle = Shuffle::kFull;
  Loader shuffled(dataset, options);
  std::vector<std::uint64_t> samples = epoch_of(shuffled);
  CHECK(samples != epoch_of(shuffled));
  std::ranges::sort(samples);
  CHECK(samples == std::vector<std::uint64_t>{0, 7, 7, 12, 22});
  options.subset = {23};
  CHECK_THAT(test::message_of<InvalidArgument>([&] { Loader(dataset, options); }),
             test::contains("`subset` must be below 23"));
  options.subset = std::vector<std::uint64_t>();
  CHECK(Loader(dataset, options).batches_per_epoch() == 0);
}

TEST_CASE("weights decide how often a sample is drawn", "[reader][loader]") {
  const TempFolder folder;
  const MadeDataset made = make_dataset(folder.path(), {.shards = {4}});
  const Dataset dataset = Dataset::open(made.folder);
  LoaderOptions options = options_of(Shuffle::kNone, LastBatch::kKeep, 3);
  options.weights = {0, 1, 0, 3};
  Loader loader(dataset, options);
  std::map<std::uint64_t, int> counts;
  for (int epoch = 0; epoch < 1000; ++epoch) {
    for (const std::uint64_t sample : epoch_of(loader)) ++counts[sample];
  }
  CHECK(counts.size() == 2);
  CHECK(std::abs(counts[3] - 3000) < 150);  // five standard deviations
  CHECK(counts[1] + counts[3] == 4000);

  loader.set_epoch(7);
  REQUIRE(loader.next());
  const OrderState state = OrderState::from_json(loader.state().to_json());
  const std::vector<std::uint64_t> rest = epoch_of(loader);
  options.threads = 1;
  Loader again(dataset, options);
  again.resume(state);
  CHECK(epoch_of(again) == rest);
  options.weights.clear();
  Loader unweighted(dataset, options);
  CHECK_THAT(test::message_of<InvalidArgument>([&] { unweighted.resume(state); }),
             test::contains("`weights`"));
}

TEST_CASE("means of pixels from 0 to 255 are refused", "[reader][loader][malformed]") {
  const TempFolder folder;
  const MadeDataset made = make_dataset(folder.path(), {.shards = {3}});
  const Dataset dataset = Dataset::open(made.folder);
  LoaderOptions options = options_of(Shuffle::kNone, LastBatch::kKeep, 3);
  options.transform.normalize = Normalization{{125.3F, 122.9F, 113.8F}, {51.5F, 50.8F, 51.2F}};
  const std::string message = test::message_of<InvalidArgument>([&] { Loader(dataset, options); });
  CHECK_THAT(message, test::contains("`normalize` has a mean of 125.3"));
  options.transform.normalize = Normalization{{1, 0.5F, -1}, {0.5F, 1, 1}};
  CHECK_NOTHROW(Loader(dataset, options));
}

TEST_CASE("invalid weights are refused", "[reader][loader][malformed]") {
  const TempFolder folder;
  const MadeDataset made = make_dataset(folder.path(), {.shards = {3}});
  const Dataset dataset = Dataset::open(made.folder);
  LoaderOptions options = options_of(Shuffle::kNone, LastBatch::kKeep, 3);
  const auto refused = [&](std::vector<double> weights) {
    options.weights = std::move(weights);
    return test::message_of<InvalidArgument>([&] { Loader(dataset, options); });
  };
  CHECK_THAT(refused({1, 2}), test::contains("one entry for each of 3 samples, got 2"));
  CHECK_THAT(refused({0, 0, 0}), test::contains("above 0, got 0"));
  CHECK_THAT(refused({1, -1, 1}), test::contains("not negative, got -1"));
  CHECK_THAT(refused({1, NAN, 1}), test::contains("got nan"));
  CHECK_THAT(refused({1e308, 1e308, 1e308}), test::contains("above 0, got inf"));
  options.order.shuffle = Shuffle::kFull;
  CHECK_THAT(refused({1, 1, 1}), test::contains("cannot be combined"));
  options.weights.clear();
  options.order.shuffle = Shuffle::kWeighted;
  CHECK_THROWS_AS(Loader(dataset, options), InvalidArgument);
}

TEST_CASE("set_epoch goes to the beginning of any epoch", "[reader][loader][concurrency]") {
  const TempFolder folder;
  const MadeDataset made = make_dataset(folder.path(), {.shards = {30, 30}});
  const Dataset dataset = Dataset::open(made.folder);
  const LoaderOptions options = options_of(Shuffle::kBlock, LastBatch::kKeep, 7, 3);
  std::vector<std::vector<std::uint64_t>> epochs;
  Loader straight(dataset, options);
  for (int i = 0; i < 4; ++i) epochs.push_back(epoch_of(straight));
  CHECK(epochs[0] != epochs[1]);
  Loader loader(dataset, options);
  Random random(2);
  for (int round = 0; round < 100; ++round) {
    const std::uint64_t epoch = below(random, 4);
    loader.set_epoch(epoch);
    CHECK(loader.epoch() == epoch);
    CHECK(loader.batches_left() == 9);
    std::vector<std::uint64_t> samples;
    for (std::uint64_t i = below(random, 4); i > 0; --i) {
      const auto batch = loader.next();
      REQUIRE(batch);
      REQUIRE(is_right(*batch, made));
      samples.insert(samples.end(), batch->samples().begin(), batch->samples().end());
    }
    CHECK(std::equal(samples.begin(), samples.end(), epochs[epoch].begin()));
  }
  loader.set_epoch(3);
  CHECK(epoch_of(loader) == epochs[3]);
}

TEST_CASE("held batches keep their content, even after their loader", "[reader][loader]") {
  const TempFolder folder;
  const MadeDataset made = make_dataset(folder.path(), {.shards = {31, 33}});
  for (const Shuffle shuffle : {Shuffle::kNone, Shuffle::kFull}) {
    std::vector<Batch> held;
    {
      Loader loader(Dataset::open(made.folder), options_of(shuffle, LastBatch::kKeep, 3));
      for (int i = 0; i < 60; ++i) {
        if (auto batch = loader.next()) held.push_back(std::move(*batch));
        for (int j = 0; j < 3; ++j) (void)loader.next();
      }
      for (const Batch& batch : held) CHECK(is_right(batch, made));
    }
    for (const Batch& batch : held) CHECK(is_right(batch, made));
    std::vector<const std::byte*> places;
    for (Batch& batch : held) {
      const std::byte* const before = batch.data();
      places.push_back(batch.make_writable());
      CHECK(batch.data() == places.back());
      CHECK((batch.is_view() || batch.data() == before));
      CHECK(is_right(batch, made));
    }
    std::ranges::sort(places);
    CHECK(std::ranges::adjacent_find(places) == places.end());  // no two share memory
    while (held.size() > 1) {
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(held.size() / 2));
      CHECK(is_right(held.back(), made));
    }
  }
}

TEST_CASE("batches can be moved and assigned", "[reader][loader]") {
  const TempFolder folder;
  const MadeDataset made = make_dataset(folder.path(), {.shards = {12}});
  Loader first(Dataset::open(made.folder), options_of(Shuffle::kFull, LastBatch::kKeep, 3));
  Loader loader = std::move(first);
  Batch a = *loader.next();
  Batch b = *loader.next();
  const auto b_samples = std::vector(b.samples().begin(), b.samples().end());
  a = std::move(b);
  CHECK(std::ranges::equal(a.samples(), b_samples));
  CHECK(is_right(a, made));
  loader = Loader(Dataset::open(made.folder), options_of(Shuffle::kNone, LastBatch::kKeep, 3));
  CHECK(is_right(a, made));
  CHECK(is_right(*loader.next(), made));
}

/// The calls that make a loader forget an error.
enum class Restart { kResume, kOtherEpoch, kSameEpoch };

void check_error(const std::filesystem::path& folder, Shuffle shuffle, unsigned threads,
                 std::size_t missing, Restart restart) {
  const MadeDataset made = make_dataset(folder, {.shards = {8, 8, 8}});
  const auto away = folder / "away";
  std::filesystem::rename(made.shards[missing], away);
  Loader loader(Dataset::open(made.folder), options_of(shuffle, LastBatch::kKeep, 4, threads));
  const auto take_all = [&] {
    while (const auto batch = loader.next()) CHECK(is_right(*batch, made));
  };
  OrderState state;
  for (int i = 0; i < 3; ++i) {
    const std::string message = test::message_of<IoError>(take_all);
    CHECK_THAT(message, test::contains(made.shards[missing].filename().string()));
    if (i == 0) state = loader.state();
    CHECK(loader.state() == state);
  }
  CHECK(state.epoch == 0);
  if (shuffle == Shuffle::kNone) CHECK(state.position == 8 * missing);
  // Once the shard exists again, a restart is enough.
  std::filesystem::rename(away, made.shards[missing]);
  if (restart == Restart::kResume) loader.resume(state);
  if (restart == Restart::kOtherEpoch) loader.set_epoch(1);
  if (restart == Restart::kSameEpoch) loader.set_epoch(0);
  CHECK_NOTHROW(take_all());
}

TEST_CASE("an error of a worker reaches the consumer at every call", "[reader][loader]") {
  const TempFolder folder;
  for (const Shuffle shuffle : {Shuffle::kNone, Shuffle::kFull}) {
    for (const unsigned threads : {1U, 4U}) {
      for (const std::size_t missing : {0U, 1U}) {
        for (const Restart restart :
             {Restart::kResume, Restart::kOtherEpoch, Restart::kSameEpoch}) {
          CAPTURE(name(shuffle), threads, missing, static_cast<int>(restart));
          check_error(folder.path(), shuffle, threads, missing, restart);
        }
      }
    }
  }
}

TEST_CASE("a loader can be destroyed at any time", "[reader][loader][concurrency]") {
  const TempFolder folder;
  const MadeDataset made =
      make_dataset(folder.path(), {.spec = test::spec_of(64, 64, 3), .shards = {50, 50}});
  const Dataset dataset = Dataset::open(made.folder);
  Random random(3);
  for (int round = 0; round < 300; ++round) {
    LoaderOptions options =
        options_of(round % 2 == 0 ? Shuffle::kNone : Shuffle::kFull, LastBatch::kKeep,
                   1 + below(random, 30), static_cast<unsigned>(1 + below(random, 5)));
    options.prefetch = 1 + below(random, 4);
    Loader loader(dataset, options);
    if (round % 3 == 0) ::usleep(static_cast<useconds_t>(below(random, 500)));
    std::vector<Batch> held;
    for (std::uint64_t i = below(random, 5); i > 0; --i) {
      if (auto batch = loader.next()) held.push_back(std::move(*batch));
    }
    if (round % 5 == 0) loader.set_epoch(below(random, 3));
  }
}

TEST_CASE("a loader of no samples has empty epochs", "[reader][loader]") {
  const TempFolder folder;
  const MadeDataset made = make_dataset(folder.path(), {.shards = {0}});
  for (const LastBatch last_batch : {LastBatch::kDrop, LastBatch::kPad, LastBatch::kKeep}) {
    for (const Shuffle shuffle : {Shuffle::kNone, Shuffle::kBlock, Shuffle::kFull}) {
      Loader loader(Dataset::open(made.folder), options_of(shuffle, last_batch, 3));
      for (std::uint64_t epoch = 0; epoch < 10; ++epoch) {
        CHECK(loader.epoch() == epoch);
        CHECK(loader.batches_left() == 0);
        CHECK_FALSE(loader.next());
      }
    }
  }
}

}  // namespace
}  // namespace precache
