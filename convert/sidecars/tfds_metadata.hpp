// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "precache/formats/manifest.hpp"

/// What TensorFlow Datasets wants to know of a folder of TFRecords: dataset_info.json,
/// features.json, and label.labels.txt where there are classes.
namespace precache::tfds {

/// Describes all splits of the manifest. Writes dataset_info.json last, whose path is returned.
/// Throws Unsupported if TensorFlow Datasets would look for shards under other names,
/// InvalidArgument if other people's metadata is there, and IoError.
std::filesystem::path write_metadata(const std::filesystem::path& folder, const Manifest& manifest);

/// Whether the folder has metadata that write_metadata() wrote.
[[nodiscard]] bool has_metadata(const std::filesystem::path& folder);

/// Removes what write_metadata() wrote, if it is there.
void remove_metadata(const std::filesystem::path& folder);

}  // namespace precache::tfds
