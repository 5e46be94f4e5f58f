// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "precache/formats/columns.hpp"
#include "precache/formats/format.hpp"
#include "precache/formats/name_limits.hpp"
#include "precache/formats/named_column.hpp"
#include "precache/formats/recipe.hpp"
#include "precache/formats/tensor_spec.hpp"

namespace precache {

inline constexpr const char* kManifestName = "dataset.json";
/// Next to it: the folder of unfinished work, with a folder for each split.
inline constexpr const char* kWorkFolderName = ".precache";

struct ShardEntry {
  std::string file;  // next to the manifest
  std::uint64_t samples = 0;
  std::uint64_t bytes = 0;
  std::uint32_t crc32c = 0;  // of the whole file
  SharedColumns columns;
  bool operator==(const ShardEntry&) const = default;
};

struct SplitEntry {
  std::uint64_t samples = 0;
  std::uint64_t skipped = 0;
  std::uint64_t seed = 0;
  bool shuffled = true;
  std::uint64_t max_pixels = 0;  // larger images were skipped; 0: there was no limit
  std::string source_fingerprint;
  std::string content_fingerprint{};  // of the samples' bytes; empty if unknown
  /// Of all listed samples, including those that were skipped; none in manifests of 0.1 and before.
  std::optional<NameLimits> names{};
  std::vector<NamedColumn> columns{};  // next to image, label and key
  std::vector<ShardEntry> shards;      // each has the places of `columns`
};

/// The contents of `dataset.json`. docs/formats/manifest.md and docs/formats/dataset.schema.json
/// specify the file.
struct Manifest {
  std::vector<std::string> classes;
  TensorSpec spec;
  StoredRecipe recipe;
  Format format = Format::kTar;
  std::map<std::string, SplitEntry> splits;

  /// The text of dataset.json, the same for equal manifests; docs/formats/manifest.md specifies it.
  [[nodiscard]] std::string to_json() const;
  /// Throws CorruptData if the text breaks the specification, Unsupported if its version is newer.
  [[nodiscard]] static Manifest from_json(std::string_view text, const std::filesystem::path& path);
  /// Throws IoError, CorruptData or Unsupported.
  [[nodiscard]] static Manifest read(const std::filesystem::path& path);
};

}  // namespace precache
