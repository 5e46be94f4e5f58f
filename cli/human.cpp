// SPDX-License-Identifier: Apache-2.0
#include "cli/human.hpp"

#include <fmt/format.h>

namespace precache::human {

std::string clock(double seconds) {
  const auto whole = static_cast<std::uint64_t>(seconds < 0 ? 0 : seconds);
  if (whole >= 3600)
    return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace precache::human
