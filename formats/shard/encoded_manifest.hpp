// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "precache/formats/format.hpp"

namespace precache {

/// Stands beside finished shards of encoded images, and is written last.
inline constexpr const char* kEncodedManifestName = "encoded.json";
/// Beside it: the names of the classes, one a line.
inline constexpr const char* kClassesName = "classes.txt";

struct EncodedShardEntry {
  std::string file;
  std::uint64_t samples = 0;
  std::uint64_t bytes = 0;
  std::uint32_t crc32c = 0;  // of the whole file
};

struct EncodedSplit {
  Format format = Format::kTar;
  std::uint64_t samples = 0;
  std::uint64_t skipped = 0;
  std::optional<std::uint64_t> seed;  // none: not shuffled
  std::string image_name{};           // the extension of all images of a tar; empty: their own
  std::string source_fingerprint;
  std::string content_fingerprint{};  // of the images' bytes; empty where it is not known
  std::vector<EncodedShardEntry> shards;
};

/// What `encoded.json` says: which splits are complete. docs/formats/encoded.md specifies it.
struct EncodedManifest {
  std::map<std::string, EncodedSplit> splits;

  [[nodiscard]] std::string to_json() const;
  /// Of a folder; empty if it has none. Throws IoError, CorruptData and Unsupported.
  [[nodiscard]] static EncodedManifest read(const std::filesystem::path& folder);
};

/// What a folder says of shards of encoded images that lie in it.
struct EncodedFolder {
  EncodedManifest manifest;
  std::vector<std::string> classes;  // names by label; may be empty

  /// Nothing if the folder has no `encoded.json`, or one of somebody else. Throws IoError, and what
  /// EncodedManifest::read() throws for one of ours.
  [[nodiscard]] static EncodedFolder find(const std::filesystem::path& folder);
  /// Null if it is not in the manifest.
  [[nodiscard]] const EncodedShardEntry* shard(std::string_view file) const;
};

}  // namespace precache
