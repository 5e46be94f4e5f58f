// SPDX-License-Identifier: Apache-2.0
#include "formats/bytes/size_text.hpp"

#include <fmt/format.h>

#include <array>

namespace precache {

std::string size_text(std::uint64_t bytes) {
  constexpr std::array kUnits{"B", "KB", "MB", "GB", "TB", "PB"};
  if (bytes < 1000) return fmt::format("{} B", bytes);
  auto scaled = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; scaled >= 999.95 && unit + 1 < kUnits.size(); ++unit) scaled /= 1000;
  return fmt::format("{:.1f} {}", scaled, kUnits[unit]);
}

}  // namespace precache
