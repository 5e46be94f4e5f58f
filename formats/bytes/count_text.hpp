// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

/// Numbers for people.
namespace precache::human {

/// 1281167 -> "1,281,167".
[[nodiscard]] std::string count(std::uint64_t value);
/// "1 image", "2 images".
[[nodiscard]] std::string count(std::uint64_t value, const std::string& noun);

}  // namespace precache::human
