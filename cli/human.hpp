// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "formats/bytes/count_text.hpp"

/// Numbers for people.
namespace precache::human {

/// Seconds -> "0:07", "1:02:03".
[[nodiscard]] std::string clock(double seconds);

}  // namespace precache::human
