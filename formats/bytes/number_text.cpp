// SPDX-License-Identifier: Apache-2.0
#include "formats/bytes/number_text.hpp"

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

namespace human {

std::string count(std::uint64_t value) {
  std::string digits = fmt::format("{}", value);
  for (std::size_t at = digits.size(); at > 3; at -= 3) digits.insert(at - 3, ",");
  return digits;
}

std::string count(std::uint64_t value, const std::string& noun) {
  const bool es = noun.ends_with("s");
  return count(value) + " " + noun + (value == 1 ? "" : es ? "es" : "s");
}

std::string clock(double seconds) {
  const auto whole = static_cast<std::uint64_t>(seconds < 0 ? 0 : seconds);
  if (whole >= 3600)
    return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace human
}  // namespace precache
