// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "formats/shard/framing.hpp"

/// The meaning of file names. If the content is known too, it decides; see file_kind.hpp.
namespace precache {

/// An ending of image files, without its dot.
struct ImageEnding {
  std::string_view ending;
  std::string_view kind;    // as in "JPEG"
  bool is_decoded = false;  // by precache: JPEG and PNG
};
/// Null for endings of other files.  REQUIRES: `ending` is in lower case.
[[nodiscard]] const ImageEnding* find_image_ending(std::string_view ending);

/// Whether a file name has an ending of JPEG or PNG images, in upper or lower case.
[[nodiscard]] bool has_image_extension(std::string_view file_name);

/// Why a file or folder of this name is left out, whatever its content; null if it is not. Names
/// that start with a dot are hidden. macOS puts such files next to others on foreign disks and in
/// archives.
[[nodiscard]] const char* hidden_reason(std::string_view file_name);

/// "train-000012" of "train-000012.tar" and of "train-000012.tar.gz"; other names are returned
/// unchanged.
[[nodiscard]] std::string_view without_shard_ending(std::string_view file_name);

/// The format that a file's name suggests, if any.
[[nodiscard]] std::optional<Format> format_of_name(const std::filesystem::path& path);

}  // namespace precache
