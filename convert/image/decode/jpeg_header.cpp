// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "convert/image/decode/exif.hpp"
#include "convert/image/decode/jpeg_decoder.hpp"
#include "formats/os/file.hpp"

namespace precache {
namespace {

using namespace std::string_view_literals;

constexpr auto kExifPrefix = "Exif\0\0"sv;
constexpr auto kXmpPrefix = "http://ns.adobe.com/xap/1.0/\0"sv;

Rejection broken(std::string reason) { return {RejectionStage::kDecode, std::move(reason)}; }

constexpr bool is_frame(unsigned marker) {  // SOF0 to SOF15 without DHT, JPG and DAC; and DHP
  return (marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc) ||
         marker == 0xde;
}

constexpr bool has_segment(unsigned marker) {
  return (marker >= 0xc0 && marker <= 0xcf && marker != 0xc8) ||
         (marker >= 0xda && marker <= 0xef) || marker == 0xfe;
}

unsigned byte_at(std::span<const std::byte> bytes, std::size_t at) {
  return std::to_integer<unsigned>(bytes[at]);
}

std::optional<Rejection> read_frame(std::span<const std::byte> segment, ImageHeader& header) {
  if (segment.size() < 6) return broken("the frame header is too short");
  if (const unsigned bits = byte_at(segment, 0); bits != 8) {
    return broken(fmt::format("JPEG with {} bits per component is not supported", bits));
  }
  const unsigned components = byte_at(segment, 5);
  if (components != 1 && components != 3 && components != 4) {
    return broken(fmt::format("JPEG with {} components is not supported", components));
  }
  header.height = byte_at(segment, 1) << 8 | byte_at(segment, 2);
  header.width = byte_at(segment, 3) << 8 | byte_at(segment, 4);
  return std::nullopt;
}

std::optional<Rejection> check_quantization(std::span<const std::byte> segment) {
  while (!segment.empty()) {
    const std::size_t table = byte_at(segment, 0) < 16 ? 1 + 64 : 1 + 128;
    if (segment.size() < table) return broken("a quantization table is too short");
    segment = segment.subspan(table);
  }
  return std::nullopt;
}

}  // namespace

std::optional<Rejection> read_jpeg_header(std::span<const std::byte> file, ImageHeader& header) {
  header = {};
  std::vector<std::byte> exif;  // may be spread over several segments
  std::span<const std::byte> xmp;
  std::size_t at = 2;  // after SOI
  while (at < file.size()) {
    if (byte_at(file, at) != 0xff) {  // stray bytes between segments
      ++at;
      continue;
    }
    if (at + 1 >= file.size()) break;
    const unsigned marker = byte_at(file, at + 1);
    if (marker == 0xff) {  // fill byte
      ++at;
      continue;
    }
    at += 2;
    if (marker == 0) continue;
    if (marker < 0xc0) return broken(fmt::format("unknown marker 0x{:02x}", marker));
    if (!has_segment(marker)) continue;

    if (file.size() - at < 2) return broken("the file ends in its header");
    const std::size_t length = byte_at(file, at) << 8 | byte_at(file, at + 1);
    const std::size_t size = length < 2 ? 0 : length - 2;
    at += 2;
    if (size > file.size() - at) return broken("the file ends in its header");
    const auto segment = file.subspan(at, size);
    at += size;

    std::optional<Rejection> rejection;
    if (is_frame(marker)) rejection = read_frame(segment, header);
    if (marker >= 0xc0 && marker <= 0xc2) {
      // Huffman codes take at least one bit for each block of 8x8 pixels.
      const std::uint64_t blocks = std::uint64_t{header.width / 8} * (header.height / 8);
      header.is_implausible = blocks > file.size() * 8;
    }
    if (marker == 0xdb) rejection = check_quantization(segment);
    if (rejection) return rejection;
    if (marker == 0xe1 && as_text(segment).starts_with(kExifPrefix)) {
      const auto data = segment.subspan(kExifPrefix.size());
      exif.insert(exif.end(), data.begin(), data.end());
    }
    if (marker == 0xe1 && as_text(segment).starts_with(kXmpPrefix)) {
      xmp = segment.subspan(kXmpPrefix.size());
    }
    if (marker == 0xda) {
      if (header.width == 0 || header.height == 0) return broken("the image has no size");
      header.orientation = orientation_of(exif, xmp);
      return std::nullopt;
    }
  }
  return broken("the file has no image data");
}

}  // namespace precache
