// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace precache {

/// What the file system of `path`, or of the folder where it will be made, has left for us.
[[nodiscard]] std::uint64_t free_bytes(std::filesystem::path path);

/// What a file takes on its disk; 0 if there is none.
[[nodiscard]] std::uint64_t allocated_bytes(const std::filesystem::path& path);

/// Throws IoError if shards of `needed` bytes do not fit. `reusable` is what they get of files that
/// they replace; `hint` says what else to do.
void check_space(const std::filesystem::path& out, std::uint64_t needed, std::uint64_t reusable,
                 const std::string& hint);

}  // namespace precache
