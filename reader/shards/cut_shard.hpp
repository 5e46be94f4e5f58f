// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "reader/shards/shard_listing.hpp"

namespace precache {

inline constexpr const char* kMissingShard = "the manifest lists this file, but it does not exist";

/// What is left of a shard whose end is missing or cannot be read.
struct CutShard {
  std::uint64_t samples = 0;  // that are whole
  std::uint64_t offset = 0;   // of what is not
  std::string reason;
};

/// Of a tar archive that no manifest describes; none if its entries follow each other to the end.
[[nodiscard]] std::optional<CutShard> find_cut(std::span<const std::byte> archive,
                                               const std::filesystem::path& path);

/// Of a shard that has not the size that its manifest says; none if it has.
[[nodiscard]] std::optional<CutShard> find_cut(const ListedShard& shard, std::uint64_t bytes);

}  // namespace precache
