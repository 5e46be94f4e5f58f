// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "precache/formats/error.hpp"
#include "reader/loader/epoch_order.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/catch.hpp"

namespace precache {
namespace {

using test::below;
using test::Random;

constexpr LastBatch kLastBatches[] = {LastBatch::kDrop, LastBatch::kPad, LastBatch::kKeep,
                                      LastBatch::kEven};

std::vector<RankSlices> ranks_of(std::uint64_t samples, std::uint64_t position,
                                 std::uint64_t batch_size, std::uint64_t world_size,
                                 LastBatch last_batch) {
  std::vector<RankSlices> ranks;
  for (std::uint64_t rank = 0; rank < world_size; ++rank) {
    ranks.push_back({samples, position, batch_size, rank, world_size, last_batch});
  }
  return ranks;
}

/// The positions that all ranks together take in one epoch, from `position` to the end.
void check_rest_of_epoch(std::uint64_t samples, std::uint64_t position, std::uint64_t batch_size,
                         std::uint64_t world_size, LastBatch last_batch) {
  const auto ranks = ranks_of(samples, position, batch_size, world_size, last_batch);
  const std::uint64_t all = batch_size * world_size;
  const std::uint64_t left = samples - position;
  const std::uint64_t steps = ranks[0].steps();
  CHECK(steps == (last_batch == LastBatch::kDrop ? left / all : (left + all - 1) / all));
  const bool is_shared = last_batch == LastBatch::kKeep || last_batch == LastBatch::kEven;
  std::uint64_t next = position;  // the ranks take one range, in the order of steps and ranks
  for (std::uint64_t step = 0; step < steps; ++step) {
    const std::uint64_t in_step = std::min(all, left - step * all);
    for (const RankSlices& rank : ranks) {
      CHECK(rank.position_after(step) == position + step * all);
      const auto [first, count] = rank.slice(step);
      CHECK(first == next);
      if (!is_shared || in_step == all) {
        CHECK(count == batch_size);
      } else if (last_batch == LastBatch::kEven) {
        CHECK(count == (in_step + world_size - 1) / world_size);
      } else {
        CHECK(count == in_step / world_size + (rank.rank < in_step % world_size ? 1 : 0));
      }
      next += count;
    }
  }
  for (const RankSlices& rank : ranks) {
    CHECK(rank.steps() == steps);
    CHECK(rank.position_after(steps) == std::min(next, samples));
  }
  switch (last_batch) {
    case LastBatch::kDrop:
      CHECK(next <= samples);
      CHECK(samples - next < all);
      break;
    case LastBatch::kPad:
      CHECK(next >= samples);
      CHECK(next - samples < all);
      break;
    case LastBatch::kKeep:
      CHECK(next == samples);
      break;
    case LastBatch::kEven:
      CHECK(next >= samples);
      CHECK(next - samples < world_size);  // as many repeats as DistributedSampler's at most
      break;
  }
}

TEST_CASE("step t of rank r is the r-th slice of the t-th range", "[reader][order]") {
  const RankSlices slices{1000, 10, 7, 2, 4, LastBatch::kDrop};
  CHECK(slices.steps() == 35);
  for (std::uint64_t step = 0; step < 35; ++step) {
    CHECK(slices.slice(step).first == 10 + step * 4 * 7 + 2 * 7);
    CHECK(slices.slice(step).count == 7);
  }
}

TEST_CASE("ranks share the epoch according to last_batch", "[reader][order]") {
  for (const LastBatch last_batch : kLastBatches) {
    for (std::uint64_t samples = 0; samples <= 25; ++samples) {
      for (std::uint64_t position = 0; position <= samples; position += 1 + samples / 6) {
        for (std::uint64_t batch_size = 1; batch_size <= 7; ++batch_size) {
          for (std::uint64_t world_size = 1; world_size <= 5; ++world_size) {
            CAPTURE(name(last_batch), samples, position, batch_size, world_size);
            check_rest_of_epoch(samples, position, batch_size, world_size, last_batch);
          }
        }
      }
      check_rest_of_epoch(samples, samples, 3, 2, last_batch);
    }
    check_rest_of_epoch(100'003, 4711, 64, 5, last_batch);
  }
}

TEST_CASE("batches larger than the dataset do not overflow", "[reader][order]") {
  constexpr std::uint64_t kMost = UINT32_MAX;
  for (const std::uint64_t rank : {std::uint64_t{0}, std::uint64_t{1}, kMost - 1}) {
    CAPTURE(rank);
    CHECK(RankSlices{10, 4, kMost, rank, kMost, LastBatch::kDrop}.steps() == 0);
    const RankSlices pad{10, 4, kMost, rank, kMost, LastBatch::kPad};
    CHECK(pad.steps() == 1);
    CHECK(pad.slice(0).first == 4 + rank * kMost);
    CHECK(pad.slice(0).count == kMost);
    CHECK(pad.position_after(1) == 10);
    const RankSlices keep{10, 4, kMost, rank, kMost, LastBatch::kKeep};
    CHECK(keep.steps() == 1);
    CHECK(keep.slice(0).count == (rank < 6 ? 1 : 0));
    CHECK(keep.position_after(1) == 10);
    const RankSlices even{10, 4, kMost, rank, kMost, LastBatch::kEven};
    CHECK(even.slice(0).first == 4 + rank);
    CHECK(even.slice(0).count == 1);
  }
}

/// A run that is stopped and resumed with other ranks and batches. Counts how often each position
/// was returned.
class StoppedRun {
 public:
  StoppedRun(std::uint64_t samples, LastBatch last_batch, Random& random)
      : samples_(samples), last_batch_(last_batch), random_(random), served_(samples) {
    state_.samples = samples;
  }

  /// Takes some steps with some ranks. True if that was the end of the epoch.
  bool advance() {
    const std::uint64_t world_size = 1 + below(random_, 5);
    const std::uint64_t batch_size = 1 + below(random_, 9);
    const auto ranks = ranks_of(samples_, state_.position, batch_size, world_size, last_batch_);
    const std::uint64_t steps = ranks[0].steps();
    const std::uint64_t wanted = below(random_, steps + 2);  // often all of them
    std::vector<std::uint64_t> batches(world_size);
    for (std::uint64_t step = 0; step < std::min(wanted, steps); ++step) {
      for (const RankSlices& rank : ranks) serve(rank.slice(step), batches[rank.rank]);
    }
    if (last_batch_ != LastBatch::kKeep) {
      CHECK(std::all_of(batches.begin(), batches.end(), [&](auto n) { return n == batches[0]; }));
    }
    OrderState now = state_;
    now.position = ranks[0].position_after(std::min(wanted, steps));
    for (const RankSlices& rank : ranks) {
      CHECK(rank.position_after(std::min(wanted, steps)) == now.position);
    }
    state_ = OrderState::from_json(now.to_json());
    unit_ = world_size * batch_size;
    world_size_ = world_size;
    return wanted >= steps;
  }

  void check_epoch() const {
    if (last_batch_ == LastBatch::kDrop) CHECK(samples_ - state_.position < unit_);
    if (last_batch_ != LastBatch::kDrop) CHECK(state_.position == samples_);
    if (last_batch_ == LastBatch::kPad) CHECK(padding_ < unit_);
    if (last_batch_ == LastBatch::kEven) CHECK(padding_ < world_size_);
    if (last_batch_ == LastBatch::kDrop || last_batch_ == LastBatch::kKeep) CHECK(padding_ == 0);
    for (std::uint64_t i = 0; i < samples_; ++i) {
      if (served_[i] == (i < state_.position ? 1 : 0)) continue;
      CAPTURE(i, served_[i]);
      FAIL("a position was not served once");
    }
  }
  void check_now() const {
    CHECK(std::all_of(served_.begin(), served_.begin() + static_cast<std::ptrdiff_t>(position()),
                      [](int times) { return times == 1; }));
    CHECK(std::all_of(served_.begin() + static_cast<std::ptrdiff_t>(position()), served_.end(),
                      [](int times) { return times == 0; }));
  }
  [[nodiscard]] std::uint64_t position() const { return state_.position; }

 private:
  void serve(const RankSlices::Slice& slice, std::uint64_t& batches) {
    if (slice.count != 0) ++batches;
    for (std::uint64_t i = slice.first; i < slice.first + slice.count; ++i) {
      if (i < samples_) {
        ++served_[i];
      } else {
        CHECK(i == samples_ + padding_++);  // modulo `samples`: the first positions of the epoch
      }
    }
  }

  std::uint64_t samples_;
  LastBatch last_batch_;
  Random& random_;
  OrderState state_;
  std::uint64_t unit_ = 1;  // positions of a step of all ranks, in the last segment
  std::uint64_t world_size_ = 1;
  std::uint64_t padding_ = 0;  // positions beyond the last
  std::vector<int> served_;
};

TEST_CASE("every position is returned once, even if ranks and batches change", "[reader][order]") {
  Random random(2024);
  std::uint64_t segments = 0;
  for (const LastBatch last_batch : kLastBatches) {
    for (int trial = 0; trial < 1500; ++trial) {
      const std::uint64_t samples = below(random, 200);
      CAPTURE(name(last_batch), trial, samples);
      StoppedRun run(samples, last_batch, random);
      while (!run.advance()) {
        ++segments;
        run.check_now();
      }
      run.check_epoch();
    }
  }
  CHECK(segments > 4500);  // most runs were stopped at least once
}

TEST_CASE("a smaller world returns samples that a larger world would drop", "[reader][order]") {
  const RankSlices four{10, 0, 2, 0, 4, LastBatch::kDrop};
  CHECK(four.steps() == 1);
  const RankSlices one{10, four.position_after(1), 2, 0, 1, LastBatch::kDrop};
  CHECK(one.steps() == 1);
  CHECK(one.slice(0).first == 8);
}

TEST_CASE("names of shuffles and last batches are parsed", "[reader][order]") {
  for (const Shuffle shuffle :
       {Shuffle::kNone, Shuffle::kBlock, Shuffle::kFull, Shuffle::kWeighted}) {
    CHECK(parse_shuffle(name(shuffle)) == shuffle);
  }
  for (const LastBatch last_batch : kLastBatches)
    CHECK(parse_last_batch(name(last_batch)) == last_batch);
  CHECK(name(Shuffle::kNone) == "none");
  CHECK(name(Shuffle::kBlock) == "block");
  CHECK(name(Shuffle::kFull) == "full");
  CHECK(name(LastBatch::kDrop) == "drop");
  CHECK(name(LastBatch::kPad) == "pad");
  CHECK(name(LastBatch::kKeep) == "keep");
  CHECK(name(LastBatch::kEven) == "even");
  for (const char* text : {"", "None", "blocks", "full ", "drop"}) {
    CHECK_THAT(
        test::message_of<InvalidArgument>([&] { (void)parse_shuffle(text); }),
        test::contains(fmt::format("must be one of none, block, full, weighted, got '{}'", text)));
  }
  for (const char* text : {"", "Drop", "none"}) {
    CHECK_THAT(test::message_of<InvalidArgument>([&] { (void)parse_last_batch(text); }),
               test::contains(fmt::format("must be one of drop, pad, keep, even, got '{}'", text)));
  }
}

OrderState example_state() {
  return {1'281'167, {Shuffle::kBlock, 64, 32}, UINT64_MAX, 89, 123'456};
}

TEST_CASE("a state is one frozen line of JSON", "[reader][order][golden]") {
  CHECK(example_state().to_json() ==
        R"({"version":1,"samples":1281167,"shuffle":"block","block_rows":64,"window_blocks":32,)"
        R"("seed":18446744073709551615,"epoch":89,"position":123456})");
}

TEST_CASE("a state is parsed from its text", "[reader][order][roundtrip]") {
  CHECK(OrderState::from_json(example_state().to_json()) == example_state());
  CHECK(OrderState::from_json(OrderState().to_json()) == OrderState());
  Random random(5);
  for (int i = 0; i < 300; ++i) {
    OrderState state;
    state.samples = random() >> below(random, 64);
    state.order.shuffle = static_cast<Shuffle>(below(random, 3));
    state.order.block_rows = random() >> below(random, 64);
    state.order.window_blocks = random() >> below(random, 64);
    state.seed = random();
    state.epoch = random() >> below(random, 64);
    state.position = state.samples == 0 ? 0 : below(random, state.samples);
    if (i % 7 == 0) state.position = state.samples;
    const std::string text = state.to_json();
    CAPTURE(text);
    CHECK(text.find('\n') == std::string::npos);
    REQUIRE(OrderState::from_json(text) == state);
    REQUIRE(OrderState::from_json(" " + nlohmann::json::parse(text).dump(2) + "\n") == state);
  }
}

TEST_CASE("a malformed state is refused with a reason", "[reader][order][malformed]") {
  const auto changed = [](const char* key, const nlohmann::json& value) {
    auto json = nlohmann::json::parse(example_state().to_json());
    if (value.is_null()) {
      json.erase(key);
    } else {
      json[key] = value;
    }
    return json.dump();
  };
  const auto message = [](const std::string& text) {
    return test::message_of<InvalidArgument>([&] { (void)OrderState::from_json(text); });
  };
  const std::string no_state = "loader state";
  for (const std::string text : {"", " ", "null", "1", "[]", "\"text\"", "{}", "{} {}", "state",
                                 "\xff\xfe", "{\"version\":1}", "[1,2,3]"}) {
    CAPTURE(text);
    CHECK_THAT(message(text), test::contains(no_state));
  }
  CHECK_THAT(message(std::string(200'000, '[')), test::contains(no_state));
  CHECK_THAT(message(example_state().to_json() + "x"), test::contains(no_state));
  CHECK_THAT(message(changed("version", 2)), test::contains("'version' must be 1, got 2"));
  CHECK_THAT(message(changed("shuffle", "best")),
             test::contains("one of none, block, full, weighted, got 'best'"));
  CHECK_THAT(message(changed("shuffle", 1)), test::contains(no_state));
  CHECK_THAT(message(changed("position", 1'281'168)),
             test::contains("'position' must be at most 1281167, got 1281168"));
  for (const char* key :
       {"version", "samples", "block_rows", "window_blocks", "seed", "epoch", "position"}) {
    CAPTURE(key);
    CHECK_THAT(message(changed(key, nullptr)), test::contains(key));
    for (const nlohmann::json& value :
         {nlohmann::json(-1), nlohmann::json(1.5), nlohmann::json("1"), nlohmann::json(true),
          nlohmann::json(1e30), nlohmann::json::array({1})}) {
      CHECK_THAT(message(changed(key, value)), test::contains(fmt::format("'{}'", key)));
    }
  }
  CHECK_THAT(message(changed("shuffle", nullptr)), test::contains("shuffle"));
}

/// True if the text is parsed, false if it is refused; fails on any other error.
bool is_read(const std::string& text) {
  try {
    const OrderState state = OrderState::from_json(text);
    CHECK(state.position <= state.samples);
    return true;
  } catch (const InvalidArgument& error) {
    CHECK(std::string_view(error.what()).size() > 10);
    return false;
  } catch (const std::exception& error) {
    FAIL("another error: " << error.what());
  }
  return false;
}

TEST_CASE("a damaged state is parsed or refused, and has no other effect",
          "[reader][order][malformed]") {
  const std::string whole = example_state().to_json();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    CAPTURE(size);
    CHECK_FALSE(is_read(std::string(whole.data(), size)));
  }
  Random random(6);
  std::size_t read = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string text = whole;
    for (std::uint64_t changes = 1 + below(random, 3); changes != 0 && !text.empty(); --changes) {
      const std::size_t at = below(random, text.size());
      switch (below(random, 3)) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, 1 + below(random, 4));
          break;
        default:
          text.insert(at, 1, R"({}[]":,.-+e019 \)"[below(random, 16)]);
      }
    }
    read += is_read(text) ? 1 : 0;
  }
  CHECK(read > 0);  // a digit was replaced by a digit
  CHECK(read < 10'000);
}

}  // namespace
}  // namespace precache
