// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace precache {

/// Stands beside finished shards of encoded images, and is written last.
inline constexpr const char* kEncodedManifestName = "encoded.json";

struct EncodedShardEntry {
  std::string file;
  std::uint64_t samples = 0;
  std::uint64_t bytes = 0;
};

struct EncodedSplit {
  std::string format;
  std::uint64_t samples = 0;
  std::uint64_t skipped = 0;
  std::optional<std::uint64_t> seed;  // none: not shuffled
  std::string source_fingerprint;
  std::vector<EncodedShardEntry> shards;
};

/// What `encoded.json` says: which splits are complete. docs/formats/encoded.md specifies it.
struct EncodedManifest {
  std::map<std::string, EncodedSplit> splits;

  [[nodiscard]] std::string to_json() const;
  /// Of a folder; empty if it has none. Throws IoError, CorruptData and Unsupported.
  [[nodiscard]] static EncodedManifest read(const std::filesystem::path& folder);
};

}  // namespace precache
