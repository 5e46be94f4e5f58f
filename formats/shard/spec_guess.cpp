// SPDX-License-Identifier: Apache-2.0
#include "formats/shard/spec_guess.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace precache {
namespace {

constexpr std::uint64_t kMostChannels = 4;

std::string text_of(std::span<const std::uint64_t> extents) {
  return fmt::format("its samples are arrays of shape ({})", fmt::join(extents, ", "));
}

bool are_channels(std::uint64_t extent) { return extent >= 1 && extent <= kMostChannels; }

}  // namespace

SpecGuess spec_of(DType dtype, Layout layout, std::span<const std::uint64_t> extents) {
  const auto fits = [](std::uint64_t extent) { return extent >= 1 && extent <= UINT32_MAX; };
  if (extents.size() != 3 || !std::ranges::all_of(extents, fits)) {
    return {std::nullopt, text_of(extents) + ", not images"};
  }
  const auto at = [&](std::size_t axis) { return static_cast<std::uint32_t>(extents[axis]); };
  const bool chw = layout == Layout::kChw;
  return {TensorSpec{dtype, layout, at(chw ? 1 : 0), at(chw ? 2 : 1), at(chw ? 0 : 2)}, {}};
}

SpecGuess guess_spec(DType dtype, std::span<const std::uint64_t> extents) {
  if (extents.size() == 2) {
    const std::array<std::uint64_t, 3> plane{1, extents[0], extents[1]};
    return spec_of(dtype, Layout::kChw, plane);
  }
  if (extents.size() == 3 && are_channels(extents[0])) {
    return spec_of(dtype, Layout::kChw, extents);
  }
  if (extents.size() == 3 && are_channels(extents[2])) {
    return spec_of(dtype, Layout::kHwc, extents);
  }
  return {std::nullopt, text_of(extents) + ", whose image axes are ambiguous"};
}

}  // namespace precache
