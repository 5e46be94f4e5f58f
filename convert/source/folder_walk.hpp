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

/// Whether a file name has an extension of JPEG or PNG images, in any case.
[[nodiscard]] bool has_image_extension(std::string_view file_name);

/// Why a file that is no image is left out, by its name.
[[nodiscard]] std::string left_out_reason(std::string_view file_name);

/// Whether macOS has put it beside a file, on a foreign disk or in an archive.
[[nodiscard]] inline bool is_of_macos(std::string_view file_name) {
  return file_name.starts_with("._");
}
inline constexpr const char* kOfMacos = "._ of macOS";

/// Finds all images below `root` by their extension, in parallel, following symbolic links; a link
/// to a folder above itself is left out. Files that are not regular are left out too and never
/// opened.
[[nodiscard]] FolderWalk walk_folder(const std::filesystem::path& root);

}  // namespace precache
