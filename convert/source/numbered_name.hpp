// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <filesystem>
#include <string>

namespace precache {

/// Longer names in a shard are no keys, as no path is longer: each record of ours would have room
/// for one.
inline constexpr std::size_t kLongestName = 4096;

/// What a sample without a name is called: after its shard and its place there.
[[nodiscard]] inline std::string numbered_name(const std::filesystem::path& shard,
                                               std::size_t number) {
  std::filesystem::path name = shard == "-" ? "stdin" : shard.filename();
  for (const char* ending : {".gz", ".tfrecord", ".tfrecords", ".h5", ".hdf5"}) {
    if (name.extension() == ending && name != ending) name = name.stem();
  }
  return fmt::format("{}/{:08}", name.string(), number);
}

}  // namespace precache
