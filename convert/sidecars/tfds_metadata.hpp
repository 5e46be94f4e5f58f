// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "precache/formats/manifest.hpp"

/// The files by which TensorFlow Datasets opens a folder of TFRecords: dataset_info.json,
/// features.json, and label.labels.txt if there are classes.
namespace precache::tfds {

/// Describes all splits of the manifest. Writes dataset_info.json last, whose path is returned.
/// Throws Unsupported if TensorFlow Datasets would look for shards under other names,
/// InvalidArgument if it would replace third-party metadata, and IoError.
std::filesystem::path write_metadata(const std::filesystem::path& folder, const Manifest& manifest);

/// Whether the folder has metadata that write_metadata() wrote.
[[nodiscard]] bool has_metadata(const std::filesystem::path& folder);

/// Removes the files that write_metadata() wrote, if they exist.
void remove_metadata(const std::filesystem::path& folder);

}  // namespace precache::tfds
