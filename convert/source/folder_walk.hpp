// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "convert/source/source.hpp"

namespace precache {

struct FolderWalk {
  Listing images;  // not sorted, without labels
  std::vector<std::string> top_folders;
  LeftOut left_out;
};

/// Why a file that is no image is left out, by its name.
[[nodiscard]] std::string left_out_reason(std::string_view file_name);

/// Finds all images below `root` by their extension, in parallel, following symbolic links; a link
/// to a folder above itself is left out, and so is what is hidden. Files that are not regular are
/// left out too and never opened.
///
/// Several links may lead to one folder, but throws InvalidArgument if folders are met again so
/// often that links must lead to links.
[[nodiscard]] FolderWalk walk_folder(const std::filesystem::path& root);

}  // namespace precache
