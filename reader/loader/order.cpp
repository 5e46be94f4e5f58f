// SPDX-License-Identifier: Apache-2.0
#include "precache/reader/order.hpp"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "precache/formats/error.hpp"
#include "reader/loader/option_checks.hpp"

namespace precache {
namespace {

constexpr std::array<std::string_view, 4> kShuffleNames{"none", "block", "full", "weighted"};
constexpr std::array<std::string_view, 4> kLastBatchNames{"drop", "pad", "keep", "even"};

}  // namespace

std::string_view name(Shuffle shuffle) {
  return kShuffleNames.at(static_cast<std::size_t>(shuffle));
}

Shuffle parse_shuffle(std::string_view text) {
  return parse_name<Shuffle>(text, kShuffleNames, "shuffle");
}

std::string_view name(LastBatch last_batch) {
  return kLastBatchNames.at(static_cast<std::size_t>(last_batch));
}

LastBatch parse_last_batch(std::string_view text) {
  return parse_name<LastBatch>(text, kLastBatchNames, "last_batch");
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
    const nlohmann::json shuffle = value("shuffle");
    if (!shuffle.is_string()) {
      throw InvalidArgument("loader state: 'shuffle' must be a string");
    }
    const OrderState state{
        count("samples"),
        {parse_shuffle(shuffle.get<std::string>()), count("block_rows"), count("window_blocks")},
        count("seed"),
        count("epoch"),
        count("position")};
    if (state.position > state.samples) {
      throw InvalidArgument(fmt::format("loader state: 'position' must be at most {}, got {}",
                                        state.samples, state.position));
    }
    return state;
  } catch (const nlohmann::json::exception& error) {
    throw InvalidArgument(fmt::format("the text is not a loader state: {}", error.what()));
  }
}

}  // namespace precache
