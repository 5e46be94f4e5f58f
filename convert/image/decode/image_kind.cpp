// SPDX-License-Identifier: Apache-2.0
#include "convert/image/decode/image_kind.hpp"

#include <array>

#include "formats/os/file.hpp"

namespace precache {
namespace {

using namespace std::string_view_literals;

struct Magic {
  std::size_t offset;
  std::string_view bytes;
  std::string_view description;
};

constexpr std::array kMagics{
    Magic{8, "WEBP"sv, "WebP"},
    Magic{0, "GIF8"sv, "GIF"},
    Magic{0, "BM"sv, "BMP"},
    Magic{0, "II*\0"sv, "TIFF"},
    Magic{0, "MM\0*"sv, "TIFF"},
    Magic{4, "ftypavif"sv, "AVIF"},
    Magic{4, "ftyphei"sv, "HEIF"},
    Magic{4, "jP  "sv, "JPEG 2000"},
    Magic{0, "\xff\x4f\xff\x51"sv, "JPEG 2000"},
    Magic{0, "\xff\x0a"sv, "JPEG XL"},
    Magic{4, "JXL "sv, "JPEG XL"},
    Magic{0, "\x1f\x8b"sv, "a gzip archive"},
    Magic{0, "PK\x03\x04"sv, "a zip archive"},
    Magic{0, "<"sv, "markup (HTML, XML or SVG)"},
};

bool starts_with(std::span<const std::byte> file, std::size_t offset, std::string_view bytes) {
  return file.size() >= offset && as_text(file.subspan(offset)).starts_with(bytes);
}

}  // namespace

ImageKind image_kind(std::span<const std::byte> file) {
  if (starts_with(file, 0, "\xff\xd8\xff"sv)) return ImageKind::kJpeg;
  if (starts_with(file, 0, "\x89PNG\r\n\x1a\n"sv)) return ImageKind::kPng;
  return ImageKind::kOther;
}

std::string_view describe_other(std::span<const std::byte> file) {
  if (file.empty()) return "an empty file";
  for (const Magic& magic : kMagics) {
    if (starts_with(file, magic.offset, magic.bytes)) return magic.description;
  }
  return "of an unknown kind";
}

}  // namespace precache
