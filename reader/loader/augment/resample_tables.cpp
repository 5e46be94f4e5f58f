// SPDX-License-Identifier: Apache-2.0
#include "reader/loader/augment/resample_tables.hpp"

#include <algorithm>
#include <new>

#include "reader/loader/augment/resample_kernels.hpp"

namespace precache {
namespace {

constexpr std::size_t kBlock = 4;         // outputs that take their pixels from one window
constexpr std::size_t kWindowBytes = 16;  // the reach of a shuffle
constexpr std::size_t kGroupsAtOnce = 4;  // their outputs fill one vector of bytes

struct Split {
  std::int32_t high;
  std::int32_t low;
};

Split split(std::int32_t weight) {
  const std::int32_t low = weight & ((1 << kLowWeightBits) - 1);
  return {(weight - low) / (1 << kLowWeightBits), low};
}

std::int32_t packed(std::int32_t first, std::int32_t second) {
  return static_cast<std::int32_t>((static_cast<std::uint32_t>(first) & 0xffffU) |
                                   static_cast<std::uint32_t>(second) << 16);
}

/// The weight of tap `i`, 0 after the last one. Taps without weights copy one pixel.
std::int32_t weight_of(const Taps& taps, const Taps::Output& output, std::size_t i) {
  if (i >= output.count) return 0;
  return taps.weights.empty() ? 1 << Taps::kPrecisionBits : taps.weights[output.weights + i];
}

WeightPair pair_of(const Taps& taps, const Taps::Output& output, std::size_t first) {
  const Split a = split(weight_of(taps, output, first));
  const Split b = split(weight_of(taps, output, first + 1));
  return {packed(a.high, b.high), packed(a.low, b.low)};
}

Taps taps_of(std::uint32_t source, std::uint32_t resized, Filter filter) {
  return make_taps({source, resized, 0, resized, 0}, filter);
}

/// Writes the shuffles of the outputs from `first` on, whose pixels begin at `base`. False if they
/// are too far apart.
bool place_group(const Taps& taps, std::size_t first, std::size_t lanes, std::uint32_t base,
                 std::int32_t* blocks, std::int32_t* bytes) {
  const auto pixel = [&](std::size_t lane) {
    return taps.outputs[std::min(first + lane, taps.outputs.size() - 1)].first - base;
  };
  for (std::size_t block = 0; block < lanes; block += kBlock) {
    const std::size_t window = pixel(block) / 4;
    if (window + kBlock > lanes) return false;
    for (std::size_t lane = block; lane < block + kBlock; ++lane) {
      const std::size_t at = pixel(lane) - 4 * window;
      if (at + 1 >= kWindowBytes) return false;
      blocks[lane] = static_cast<std::int32_t>(window + lane - block);
      // Bytes with the highest bit set become 0, so each pixel gets 16 bits.
      bytes[lane] = static_cast<std::int32_t>(0x80008000U | (at + 1) << 16 | at);
    }
  }
  return true;
}

}  // namespace

VerticalTable VerticalTable::make(std::uint32_t source, std::uint32_t resized, Filter filter) {
  const Taps taps = taps_of(source, resized, filter);
  VerticalTable table;
  table.rows.reserve(taps.outputs.size());
  for (const Taps::Output& output : taps.outputs) {
    table.rows.push_back({output.first, output.count, table.pairs.size()});
    for (std::size_t i = 0; i < output.count; i += 2) {
      table.pairs.push_back(pair_of(taps, output, i));
    }
  }
  return table;
}

HorizontalTable HorizontalTable::make(std::uint32_t source, std::uint32_t resized, Filter filter) {
  return make(source, resized, filter, resample_lanes());
}

HorizontalTable HorizontalTable::make(std::uint32_t source, std::uint32_t resized, Filter filter,
                                      std::size_t lanes) {
  HorizontalTable table;
  table.outputs = resized;
  table.taps = taps_of(source, resized, filter);
  table.reach = source;
  const auto& outputs = table.taps.outputs;
  if (lanes < kBlock || filter == Filter::kNearest) return table;
  const std::size_t at_once = lanes * kGroupsAtOnce;
  const std::size_t groups = (outputs.size() + at_once - 1) / at_once * kGroupsAtOnce;
  std::uint32_t most = 0;
  for (const Taps::Output& output : outputs) most = std::max(most, output.count);
  const std::size_t pairs = (most + 1) / 2;
  const std::size_t group_values = lanes * (2 + 2 * pairs);
  auto values = hwy::AllocateAligned<std::int32_t>(groups * group_values);
  if (values == nullptr) throw std::bad_alloc();
  std::vector<std::uint32_t> bases(groups);
  std::uint32_t last_base = 0;
  for (std::size_t group = 0; group < groups; ++group) {
    const std::size_t first = group * lanes;
    std::int32_t* at = values.get() + group * group_values;
    bases[group] = last_base = outputs[std::min(first, outputs.size() - 1)].first;
    if (!place_group(table.taps, first, lanes, bases[group], at, at + lanes)) return table;
    at += 2 * lanes;
    for (std::size_t pair = 0; pair < pairs; ++pair, at += 2 * lanes) {
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        const std::size_t output = std::min(first + lane, outputs.size() - 1);
        const WeightPair weights = pair_of(table.taps, outputs[output], 2 * pair);
        at[lane] = weights.high;
        at[lanes + lane] = weights.low;
      }
    }
  }
  table.lanes = lanes;
  table.groups = groups;
  table.pairs = pairs;
  table.reach = std::max<std::size_t>(source, last_base + 2 * (pairs - 1) + 4 * lanes);
  table.bases = std::move(bases);
  table.values = std::move(values);
  table.taps = {};
  return table;
}

}  // namespace precache
