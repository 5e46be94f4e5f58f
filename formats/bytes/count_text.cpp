// SPDX-License-Identifier: Apache-2.0
#include "formats/bytes/count_text.hpp"

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

}  // namespace precache::human
