// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

/// Numbers for people.
namespace precache {

/// Bytes: "512 B", "1.5 KB", "192.9 GB" (powers of 1000).
[[nodiscard]] std::string size_text(std::uint64_t bytes);

namespace human {

/// 1281167 -> "1,281,167".
[[nodiscard]] std::string count(std::uint64_t value);
/// "1 image", "2 images".
[[nodiscard]] std::string count(std::uint64_t value, const std::string& noun);
/// Seconds -> "0:07", "1:02:03".
[[nodiscard]] std::string clock(double seconds);

}  // namespace human
}  // namespace precache
