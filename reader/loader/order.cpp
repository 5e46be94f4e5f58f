// SPDX-License-Identifier: Apache-2.0
#include "precache/reader/order.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "precache/formats/error.hpp"

namespace precache {
namespace {

template <typename Enum, std::size_t kCount>
Enum parse_name(std::string_view text, const Enum (&values)[kCount], const char* field) {
  std::string known;
  for (const Enum value : values) {
    if (name(value) == text) return value;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", name(value));
  }
  throw InvalidArgument(fmt::format("`{}` must be one of {}; got '{}'", field, known, text));
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

std::string_view name(LastBatch last_batch) {
  switch (last_batch) {
    case LastBatch::kDrop:
      return "drop";
    case LastBatch::kPad:
      return "pad";
    case LastBatch::kKeep:
      break;
  }
  return "keep";
}

LastBatch parse_last_batch(std::string_view text) {
  return parse_name(text, {LastBatch::kDrop, LastBatch::kPad, LastBatch::kKeep}, "last_batch");
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
        throw InvalidArgument(fmt::format("the loader state has no '{}'", key));
      }
      return *found;
    };
    const auto count = [&](const char* key) {
      const nlohmann::json found = value(key);
      if (!found.is_number_unsigned()) {
        throw InvalidArgument(
            fmt::format("loader state: '{}' must be a non-negative integer", key));
      }
      return found.get<std::uint64_t>();
    };
    if (count("version") != 1) {
      throw InvalidArgument(
          fmt::format("loader state: 'version' must be 1, got {}", count("version")));
    }
    OrderState state;
    state.samples = count("samples");
    const nlohmann::json shuffle = value("shuffle");
    if (!shuffle.is_string()) {
      throw InvalidArgument("loader state: 'shuffle' must be a string");
    }
    state.order = {parse_shuffle(shuffle.get<std::string>()), count("block_rows"),
                   count("window_blocks")};
    state.seed = count("seed");
    state.epoch = count("epoch");
    state.position = count("position");
    if (state.position > state.samples) {
      throw InvalidArgument("loader state: 'position' lies after the last sample");
    }
    return state;
  } catch (const nlohmann::json::exception& error) {
    throw InvalidArgument(fmt::format("not a loader state: {}", error.what()));
  }
}

}  // namespace precache
