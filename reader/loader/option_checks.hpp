// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "precache/formats/error.hpp"

namespace precache {

/// The enumerator whose name is `text`; `names` has the names of 0, 1, 2 and so on. Throws
/// InvalidArgument for any other text; `field` is the option that the caller set.
template <typename Enum, std::size_t kCount>
[[nodiscard]] Enum parse_name(std::string_view text,
                              const std::array<std::string_view, kCount>& names,
                              std::string_view field) {
  const auto found = std::ranges::find(names, text);
  if (found != names.end()) return static_cast<Enum>(found - names.begin());
  throw InvalidArgument(
      fmt::format("`{}` must be one of {}, got '{}'", field, fmt::join(names, ", "), text));
}

/// Throws InvalidArgument unless 1 <= value <= most.
inline void check_count(std::string_view field, std::uint64_t value, std::uint64_t most) {
  if (value >= 1 && value <= most) return;
  throw InvalidArgument(fmt::format("`{}` must be between 1 and {}, got {}", field, most, value));
}

}  // namespace precache
