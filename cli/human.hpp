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
/// Bytes -> "512 B", "1.5 KB", "192.9 GB" (powers of 1000).
[[nodiscard]] std::string bytes(std::uint64_t value);
/// Seconds -> "0:07", "1:02:03".
[[nodiscard]] std::string clock(double seconds);

}  // namespace precache::human
