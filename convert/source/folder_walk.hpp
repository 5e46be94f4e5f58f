// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "convert/source/source.hpp"

namespace precache {

/// Modification times in nanoseconds of the root, "", and of the folders in it, or of those down to
/// the level that is divided into shares: they change when names in these folders do.
using FolderTimes = std::map<std::string, std::int64_t>;

struct FolderWalk {
  Listing images;  // not sorted, without labels
  std::vector<std::string> top_folders;
  FolderTimes times;
  IgnoredFiles ignored;
};

/// Why a file that is not an image is ignored, by its name.
[[nodiscard]] std::string ignored_reason(std::string_view file_name);

/// Finds all images below `root` by their extension, in parallel, following symbolic links. Ignores
/// links to a folder above themselves, hidden files, and files that are not regular, which are
/// never opened.
///
/// Several links may lead to one folder. Throws InvalidArgument if folders are reached so often
/// that links must lead to links.
///
/// With a share, only that share of the folders of one level and all below them, and of the files
/// above. It is the first level that has a folder for each share.
[[nodiscard]] FolderWalk walk_folder(const std::filesystem::path& root, Share share = {});

/// The walk whose parts these are.
[[nodiscard]] FolderWalk joined(std::vector<FolderWalk> walks);

}  // namespace precache
