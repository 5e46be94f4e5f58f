// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace precache {

/// The kind of a file, known by its first bytes, so that a message can name it.
struct FileKind {
  enum class Group {
    kUnknown,
    kDeflated,    // by gzip or zlib, which Inflater reads
    kCompressed,  // by another program
    kImage,
    kLfsPointer,
    kOther
  };
  Group group = Group::kUnknown;
  std::string_view name;  // as in "gzip", "JPEG", "HTML page"

  [[nodiscard]] bool is_compressed() const {
    return group == Group::kDeflated || group == Group::kCompressed;
  }
};

/// The first bytes of HDF5 files, or of their part after a user block.
inline constexpr std::string_view kHdf5Signature = "\x89HDF\r\n\x1a\n";

/// Looks at the first few bytes only.
[[nodiscard]] FileKind file_kind(std::span<const std::byte> file);

/// "JPEG", "PNG" …; empty if the file is not an image.
[[nodiscard]] std::string_view image_file_kind(std::span<const std::byte> file);

/// Whether precache decodes images of a kind that image_file_kind() names.
[[nodiscard]] inline bool is_decoded(std::string_view image_kind) {
  return image_kind == "JPEG" || image_kind == "PNG";
}

/// Describes a file for messages: "WebP", "a gzip archive", "an empty file". Guesses if file_kind()
/// does not know it.
[[nodiscard]] std::string describe_file(std::span<const std::byte> file);

}  // namespace precache
