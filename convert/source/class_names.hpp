// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace precache {

/// Reads class names by number: from a dataset.json, or from a text file with one name a line.
/// Throws InvalidArgument if there are none or one comes twice, IoError, or CorruptData.
[[nodiscard]] std::vector<std::string> read_class_names(const std::filesystem::path& path);

}  // namespace precache
