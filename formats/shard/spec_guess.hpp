// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "precache/formats/tensor_spec.hpp"

namespace precache {

/// What an array of a foreign file is as an image, or why it is none.
struct SpecGuess {
  std::optional<TensorSpec> spec;
  std::string obstacle;
};

/// Three extents are chw if the first is 1 to 4, else hwc if the last is; two are one channel.
[[nodiscard]] SpecGuess guess_spec(DType dtype, std::span<const std::uint64_t> extents);

/// As above, where the order of three axes is known.
[[nodiscard]] SpecGuess spec_of(DType dtype, Layout layout, std::span<const std::uint64_t> extents);

}  // namespace precache
