// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

#include "formats/shard/framing.hpp"

/// What the names of files say. Contents decide where both are known; see file_kind.hpp.
namespace precache {

/// An ending of image files, without its dot.
struct ImageEnding {
  std::string_view ending;
  std::string_view kind;    // as in "JPEG"
  bool is_decoded = false;  // by precache: JPEG and PNG
};
/// Null for other files' endings. `ending` is in lower case.
[[nodiscard]] const ImageEnding* find_image_ending(std::string_view ending);

/// Whether a file name has an ending of JPEG or PNG images, in any case.
[[nodiscard]] bool has_image_extension(std::string_view file_name);

/// Why a file or folder is left out whatever it holds, by its name; null if it is not. Names that
/// begin with a dot are those of hidden files; macOS puts some next to files on foreign disks and
/// in archives.
[[nodiscard]] const char* hidden_reason(std::string_view file_name);

/// "train-000012" of "train-000012.tar" and of "train-000012.tar.gz"; names without the ending of a
/// shard stay as they are.
[[nodiscard]] std::string_view without_shard_ending(std::string_view file_name);

/// The format that a file's name promises, if any.
[[nodiscard]] std::optional<Format> format_of_name(const std::filesystem::path& path);

}  // namespace precache
