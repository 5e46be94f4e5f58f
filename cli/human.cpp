// SPDX-License-Identifier: Apache-2.0
#include "cli/human.hpp"

#include <fmt/format.h>

namespace precache::human {

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

}  // namespace precache::human
