// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace precache {

/// How far work is, in words and numbers.
struct ProgressLine {
  std::optional<double> share;  // of the whole; none: it has not begun
  std::string text;
  std::uint64_t done = 0;
  std::uint64_t planned = 0;
  std::string unit = {};  // of both
};

}  // namespace precache
