// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace precache {

/// Bytes for people: "512 B", "1.5 KB", "192.9 GB" (powers of 1000).
[[nodiscard]] std::string size_text(std::uint64_t bytes);

}  // namespace precache
