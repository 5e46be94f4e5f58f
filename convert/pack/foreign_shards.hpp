// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reader/shards/shard_listing.hpp"

namespace precache {

/// A path whose key (see keys.hpp) is that of a sample in a shard of others, but for what would
/// lead out of the folder in which somebody extracts a tar, and for what no name should have. A
/// sample without a key gets its number.
[[nodiscard]] std::string foreign_path(std::string_view key, std::uint64_t sample,
                                       std::string_view extension);

/// The size of all files. Throws IoError.
[[nodiscard]] std::uint64_t bytes_of(const std::vector<ListedShard>& shards);

/// Changes when a file's name, size or time does, or a manifest. Throws IoError.
[[nodiscard]] std::string fingerprint_of(const std::vector<ListedShard>& shards);

}  // namespace precache
