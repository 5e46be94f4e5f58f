// SPDX-License-Identifier: Apache-2.0
#include "precache/reader/order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "formats/bytes/splitmix.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

// Not symmetric, so that (seed 1, epoch 2) and (seed 2, epoch 1) have nothing in common.
constexpr std::uint64_t combine(std::uint64_t key, std::uint64_t value) {
  return splitmix(splitmix(key + kGoldenGamma) ^ (value + kGoldenGamma));
}

std::uint64_t permuted_items(std::uint64_t samples, const OrderOptions& options) {
  if (options.shuffle != Shuffle::kBlock) return samples;
  if (options.block_rows == 0) throw InvalidArgument("block_rows is 0");
  if (options.window_blocks == 0) throw InvalidArgument("window_blocks is 0");
  return samples / options.block_rows + (samples % options.block_rows != 0 ? 1 : 0);
}

template <typename Enum, std::size_t kCount>
Enum parse_name(std::string_view text, const Enum (&values)[kCount], const char* what) {
  std::string known;
  for (const Enum value : values) {
    if (name(value) == text) return value;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", name(value));
  }
  throw InvalidArgument(fmt::format("unknown {} '{}'", what, text), "Known are " + known + ".");
}

}  // namespace

std::string_view name(Shuffle shuffle) {
  switch (shuffle) {
    case Shuffle::kNone:
      return "none";
    case Shuffle::kBlock:
      return "block";
    case Shuffle::kFull:
      break;
  }
  return "full";
}

Shuffle parse_shuffle(std::string_view text) {
  return parse_name(text, {Shuffle::kNone, Shuffle::kBlock, Shuffle::kFull}, "shuffle");
}

std::string_view name(Tail tail) {
  switch (tail) {
    case Tail::kDrop:
      return "drop";
    case Tail::kPad:
      return "pad";
    case Tail::kKeep:
      break;
  }
  return "keep";
}

Tail parse_tail(std::string_view text) {
  return parse_name(text, {Tail::kDrop, Tail::kPad, Tail::kKeep}, "tail");
}

EpochOrder::EpochOrder(std::uint64_t samples, const OrderOptions& options, std::uint64_t seed,
                       std::uint64_t epoch)
    : samples_(samples),
      options_(options),
      key_(combine(seed, epoch)),
      permutation_(permuted_items(samples, options), key_) {
  if (options.shuffle != Shuffle::kBlock || samples == 0) return;
  // A window of more blocks than there are is one of all.
  options_.window_blocks = std::min(options_.window_blocks, permuted_items(samples, options));
  options_.block_rows = std::min(options_.block_rows, samples);
  const std::uint64_t last_block = permuted_items(samples, options) - 1;
  short_block_rows_ = samples - last_block * options_.block_rows;
  short_block_position_ = permutation_.position_of(last_block);
}

std::uint64_t EpochOrder::operator[](std::uint64_t position) const {
  switch (options_.shuffle) {
    case Shuffle::kNone:
      return position;
    case Shuffle::kFull:
      return permutation_(position);
    case Shuffle::kBlock:
      break;
  }
  return block_shuffled(position);
}

std::uint64_t EpochOrder::block_shuffled(std::uint64_t position) const {
  const std::uint64_t rows = options_.block_rows;
  const std::uint64_t window_rows = rows * options_.window_blocks;  // at most about `samples`
  const std::uint64_t missing = rows - short_block_rows_;
  // The window with the short block is shorter by what that lacks, and all later ones begin
  // earlier.
  const std::uint64_t short_window = short_block_position_ / options_.window_blocks;
  const std::uint64_t behind = (short_window + 1) * window_rows - missing;
  const std::uint64_t window = (position < behind ? position : position + missing) / window_rows;
  const std::uint64_t first = window * window_rows - (window > short_window ? missing : 0);
  const std::uint64_t full_end = first + window_rows - (window == short_window ? missing : 0);
  const std::uint64_t size = std::min(full_end, samples_) - first;
  const std::uint64_t place =
      Permutation(size, combine(key_, window + 1))(position - first);  // in the window, unmixed
  // Rows behind the short block stand where they would if it were whole.
  const std::uint64_t short_end =
      (short_block_position_ % options_.window_blocks) * rows + short_block_rows_;
  const std::uint64_t whole =
      window == short_window && place >= short_end ? place + missing : place;
  const std::uint64_t block = permutation_(window * options_.window_blocks + whole / rows);
  return block * rows + whole % rows;
}

SampleRandom::SampleRandom(std::uint64_t seed, std::uint64_t epoch, std::uint64_t sample)
    : state_(combine(combine(seed, epoch), ~sample)) {}

std::uint64_t SampleRandom::below(std::uint64_t end) {
  state_ += kGoldenGamma;
  // The high half of a 128-bit product: no division, a bias below 2^-32 for any end below 2^32.
  return static_cast<std::uint64_t>((static_cast<unsigned __int128>(splitmix(state_)) * end) >> 64);
}

std::string OrderState::to_json() const {
  return nlohmann::ordered_json{{"version", 1},
                                {"samples", samples},
                                {"shuffle", name(order.shuffle)},
                                {"block_rows", order.block_rows},
                                {"window_blocks", order.window_blocks},
                                {"seed", seed},
                                {"epoch", epoch},
                                {"position", position}}
      .dump();
}

OrderState OrderState::from_json(std::string_view text) {
  try {
    const auto json = nlohmann::json::parse(text);
    const auto value = [&](const char* key) {
      const auto found = json.find(key);
      if (found == json.end()) {
        throw InvalidArgument(fmt::format("this is no loader's state: it has no '{}'", key));
      }
      return *found;
    };
    const auto count = [&](const char* key) {
      const nlohmann::json found = value(key);
      if (!found.is_number_unsigned()) {
        throw InvalidArgument(fmt::format("'{}' of a loader's state is no count", key));
      }
      return found.get<std::uint64_t>();
    };
    if (count("version") != 1) {
      throw InvalidArgument(fmt::format("a loader's state of version {}", count("version")),
                            "This build reads version 1.");
    }
    OrderState state;
    state.samples = count("samples");
    const nlohmann::json shuffle = value("shuffle");
    if (!shuffle.is_string()) {
      throw InvalidArgument("this is no loader's state: its 'shuffle' is no name");
    }
    state.order = {parse_shuffle(shuffle.get<std::string>()), count("block_rows"),
                   count("window_blocks")};
    state.seed = count("seed");
    state.epoch = count("epoch");
    state.position = count("position");
    if (state.position > state.samples) {
      throw InvalidArgument("a loader's state lies behind the last sample");
    }
    return state;
  } catch (const nlohmann::json::exception& error) {
    throw InvalidArgument(fmt::format("this is no loader's state: {}", error.what()));
  }
}

std::uint64_t RankSlices::steps() const {
  const std::uint64_t left = samples - position;
  const std::uint64_t step = batch_size * world_size;
  return left / step + (tail != Tail::kDrop && left % step != 0 ? 1 : 0);
}

RankSlices::Slice RankSlices::slice(std::uint64_t step) const {
  const std::uint64_t first = position + (step * world_size + rank) * batch_size;
  if (tail != Tail::kKeep) return {first, batch_size};
  return {first, std::min(samples - std::min(first, samples), batch_size)};
}

std::uint64_t RankSlices::position_after(std::uint64_t step) const {
  return std::min(position + step * world_size * batch_size, samples);
}

}  // namespace precache
