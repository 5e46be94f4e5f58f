// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <string>
#include <string_view>

#include "precache/formats/error.hpp"

namespace precache {

/// The one of `values` that `name()` calls `text`. Throws InvalidArgument for another text; `what`
/// says what kind of thing it names.
template <typename Enum, std::size_t kCount>
Enum parse_enum(const std::array<Enum, kCount>& values, std::string_view text,
                std::string_view what) {
  std::array<std::string_view, kCount> names{};
  for (std::size_t i = 0; i < kCount; ++i) {
    names[i] = name(values[i]);
    if (names[i] == text) return values[i];
  }
  throw InvalidArgument(fmt::format("unknown {} '{}'", what, text),
                        fmt::format("Known are {}.", fmt::join(names, ", ")));
}

}  // namespace precache
