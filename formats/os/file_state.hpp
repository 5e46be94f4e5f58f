// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "formats/os/file.hpp"

namespace precache {

/// What tells one state of a file from another.
struct FileState {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t bytes = 0;
  std::int64_t modified_ns = 0;
  bool operator==(const FileState&) const = default;
};

/// Throws IoError.
[[nodiscard]] FileState state_of(const File& file);

/// How the state of a file is asked for. Network file systems answer stat(2) from a cache that may
/// be seconds old; open(2) makes them ask their server. Where no descriptor is free, stat(2) has to
/// do.
enum class Ask { kByStat, kByOpening };

/// Of the file that has this path; none if there is no such file. Throws IoError.
[[nodiscard]] std::optional<FileState> state_at(const std::filesystem::path& path, Ask ask);

}  // namespace precache
