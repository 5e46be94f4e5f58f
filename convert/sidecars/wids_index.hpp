// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

/// The JSON that lists shards and their samples for wids, webdataset's reader with random access.
namespace precache::wids {

struct WidsShard {
  std::string file;  // next to the index
  std::uint64_t samples = 0;
  std::uint64_t bytes = 0;
};

/// SPLIT.wids.json.
[[nodiscard]] std::filesystem::path index_path(const std::filesystem::path& folder,
                                               const std::string& split);

/// Reads the headers of a tar as wids does: it ignores pax headers and the prefix field of names.
/// Throws Unsupported if wids would mix up samples, CorruptData and IoError.
[[nodiscard]] WidsShard read_shard(const std::filesystem::path& shard);

[[nodiscard]] std::string index_text(const std::string& split,
                                     const std::vector<WidsShard>& shards);

[[nodiscard]] bool is_index(std::string_view text);

}  // namespace precache::wids
