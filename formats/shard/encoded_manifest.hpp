// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "precache/formats/manifest.hpp"

namespace precache {

/// The manifest of finished shards of encoded images, which is written after them.
inline constexpr const char* kEncodedManifestName = "encoded.json";
/// Next to it: the names of the classes, one a line.
inline constexpr const char* kClassesName = "classes.txt";

struct EncodedSplit {
  Format format = Format::kTar;
  std::uint64_t samples = 0;
  std::uint64_t skipped = 0;
  std::optional<std::uint64_t> seed;  // none: not shuffled
  std::string image_name{};           // the extension of all images of a tar; empty: their own
  std::string source_fingerprint;
  std::string content_fingerprint{};  // of the images' bytes; empty where it is not known
  std::vector<ShardEntry> shards;     // without columns
};

/// The splits that are complete. docs/formats/encoded.md specifies the file.
struct EncodedManifest {
  std::map<std::string, EncodedSplit> splits;

  [[nodiscard]] std::string to_json() const;
  /// Reads the manifest of a folder; empty if it has none. Throws IoError, CorruptData and
  /// Unsupported.
  [[nodiscard]] static EncodedManifest read(const std::filesystem::path& folder);
};

/// A folder of shards of encoded images.
struct EncodedFolder {
  EncodedManifest manifest;
  std::vector<std::string> classes;  // names by label; may be empty

  /// Empty if the folder has no `encoded.json`, or a third-party file of that name. Throws as
  /// EncodedManifest::read() does.
  [[nodiscard]] static EncodedFolder find(const std::filesystem::path& folder);
  /// Null if it is not in the manifest.
  [[nodiscard]] const ShardEntry* shard(std::string_view file) const;
};

/// Whether the text is exactly what to_json() of a Manifest or an EncodedManifest wrote, by the CRC
/// at its end; nothing if it has no such member.
[[nodiscard]] std::optional<bool> has_right_own_crc(std::string_view text);

}  // namespace precache
