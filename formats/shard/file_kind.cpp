// SPDX-License-Identifier: Apache-2.0
#include "formats/shard/file_kind.hpp"

#include <fmt/format.h>

#include <array>

#include "formats/bytes/inflate.hpp"
#include "formats/os/file.hpp"

namespace precache {
namespace {

using Group = FileKind::Group;
using namespace std::string_view_literals;

struct Magic {
  std::string_view bytes;
  FileKind kind;
  std::size_t offset = 0;
  bool is_weak = false;  // too short to be distinguished from raw pixels
};

constexpr std::array kMagics{
    Magic{kGzipMagic, {Group::kDeflated, "gzip"}},
    Magic{"\x28\xb5\x2f\xfd"sv, {Group::kCompressed, "zstd"}},
    Magic{"\xfd"
          "7zXZ\0"sv,
          {Group::kCompressed, "xz"}},
    Magic{"BZh"sv, {Group::kCompressed, "bzip2"}},
    Magic{"\x04\x22\x4d\x18"sv, {Group::kCompressed, "lz4"}},
    Magic{"\x89LZO\0\r\n\x1a\n"sv, {Group::kCompressed, "lzop"}},
    Magic{"\x1f\x9d"sv, {Group::kCompressed, "compress"}},
    Magic{"LZIP"sv, {Group::kCompressed, "lzip"}},
    Magic{"GRZipII"sv, {Group::kCompressed, "grzip"}},
    Magic{"\xff\x06\0\0sNaPpY"sv, {Group::kCompressed, "snappy"}},
    Magic{"PK\x03\x04"sv, {Group::kOther, "ZIP archive"}},
    Magic{"PK\x05\x06"sv, {Group::kOther, "ZIP archive"}},
    Magic{"7z\xbc\xaf\x27\x1c"sv, {Group::kOther, "7z archive"}},
    Magic{"Rar!\x1a\x07"sv, {Group::kOther, "RAR archive"}},
    Magic{"\xff\xd8\xff"sv, {Group::kImage, "JPEG"}},
    Magic{"\x89PNG\r\n\x1a\n"sv, {Group::kImage, "PNG"}},
    Magic{"GIF8"sv, {Group::kImage, "GIF"}},
    Magic{"II*\0"sv, {Group::kImage, "TIFF"}},
    Magic{"MM\0*"sv, {Group::kImage, "TIFF"}},
    Magic{"ftypavif"sv, {Group::kImage, "AVIF"}, 4},
    Magic{"ftyphei"sv, {Group::kImage, "HEIF"}, 4},
    Magic{"jP  "sv, {Group::kImage, "JPEG 2000"}, 4},
    Magic{"\xff\x4f\xff\x51"sv, {Group::kImage, "JPEG 2000"}},
    Magic{"JXL "sv, {Group::kImage, "JPEG XL"}, 4},
    Magic{"version https://git-lfs.github.com/spec/"sv, {Group::kLfsPointer, "Git LFS pointer"}},
    Magic{"\x93NUMPY"sv, {Group::kOther, "NumPy array"}},
    Magic{"PAR1"sv, {Group::kOther, "Parquet file"}},
    Magic{"ARROW1\0\0"sv, {Group::kOther, "Arrow file"}},
    Magic{"%PDF"sv, {Group::kOther, "PDF file"}},
    Magic{"<!DOCTYPE"sv, {Group::kOther, "HTML page"}},
    Magic{"<!doctype"sv, {Group::kOther, "HTML page"}},
    Magic{"<html"sv, {Group::kOther, "HTML page"}},
    Magic{"<?xml"sv, {Group::kOther, "XML file"}},
    Magic{"BM"sv, {Group::kImage, "BMP"}, 0, true},
    Magic{"\xff\x0a"sv, {Group::kImage, "JPEG XL"}, 0, true},
    Magic{"<"sv, {Group::kOther, "markup file"}, 0, true},
};

bool starts_with(std::string_view text, const Magic& magic) {
  return text.size() >= magic.offset && text.substr(magic.offset).starts_with(magic.bytes);
}

/// Deflate with a window of 32 KiB, and the check bits of the first two bytes. Other content may
/// start in the same way, so this test comes last.
bool is_zlib(std::string_view text) {
  if (text.size() < 6 || text[0] != 0x78) return false;
  return (0x7800U + static_cast<unsigned char>(text[1])) % 31 == 0;
}

}  // namespace

FileKind file_kind(std::span<const std::byte> file) {
  std::string_view text = as_text(file);
  for (const Magic& magic : kMagics) {
    if (!magic.is_weak && starts_with(text, magic)) return magic.kind;
  }
  if (text.starts_with("RIFF") && text.substr(0, 12).ends_with("WEBP")) {
    return {Group::kImage, "WebP"};
  }
  if (is_zlib(text)) return {Group::kDeflated, "zlib"};
  const std::size_t first = text.substr(0, 64).find_first_not_of(" \t\r\n");
  if (first != 0 && first != std::string_view::npos && text[first] == '<') {
    const FileKind kind = file_kind(file.subspan(first));
    if (kind.group == Group::kOther) return kind;
  }
  return {};
}

std::string_view image_file_kind(std::span<const std::byte> file) {
  const FileKind kind = file_kind(file);
  return kind.group == Group::kImage ? kind.name : std::string_view();
}

std::string describe_file(std::span<const std::byte> file) {
  if (file.empty()) return "an empty file";
  FileKind kind = file_kind(file);
  for (const Magic& magic : kMagics) {
    if (kind.group == Group::kUnknown && starts_with(as_text(file), magic)) kind = magic.kind;
  }
  if (kind.group == Group::kImage) return std::string(kind.name);
  if (kind.group == Group::kUnknown) return "of an unknown kind";
  const bool has_vowel = std::string_view("AHX").find(kind.name.front()) != std::string_view::npos;
  return fmt::format("{} {}{}", has_vowel ? "an" : "a", kind.name,
                     kind.group == Group::kCompressed ? " archive" : "");
}

}  // namespace precache
