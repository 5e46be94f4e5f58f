// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <filesystem>
#include <string>

#include "formats/shard/file_names.hpp"

namespace precache {

/// What a sample without a name is called: after its shard and its place there.
[[nodiscard]] inline std::string numbered_name(const std::filesystem::path& shard,
                                               std::size_t number) {
  const std::string file = shard == "-" ? "stdin" : shard.filename().string();
  return fmt::format("{}/{:08}", without_shard_ending(file), number);
}

}  // namespace precache
