// SPDX-License-Identifier: Apache-2.0
#include "convert/decode/png_decoder.hpp"

#include <fmt/format.h>
#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <string_view>

#include "convert/decode/exif.hpp"
#include "formats/base/file.hpp"

namespace precache {
namespace {

using namespace std::string_view_literals;

constexpr std::size_t kSignatureBytes = 8;

std::uint32_t big_endian(std::span<const std::byte> bytes) {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value = value << 8 | std::to_integer<std::uint32_t>(bytes[static_cast<std::size_t>(i)]);
  return value;
}

// The text of an iTXt chunk with this keyword, if it is not compressed.
std::span<const std::byte> itxt(std::span<const std::byte> chunk, std::string_view keyword) {
  const std::string_view text = as_text(chunk);
  const auto end = keyword.size();
  if (!text.starts_with(keyword) || text.size() < end + 3 || text[end] != '\0' || text[end + 1] != '\0') return {};
  const auto language = text.find('\0', end + 3);
  if (language == std::string_view::npos) return {};
  const auto translated = text.find('\0', language + 1);
  if (translated == std::string_view::npos) return {};
  return chunk.subspan(translated + 1);
}

// libpng tells of EXIF data behind the pixels only when they are read, too late for choosing the region.
int find_orientation(std::span<const std::byte> file) {
  std::span<const std::byte> exif;
  std::span<const std::byte> xmp;
  std::size_t at = kSignatureBytes;
  while (file.size() - at >= 12) {
    const std::size_t size = big_endian(file.subspan(at));
    const auto type = as_text(file.subspan(at + 4, 4));
    if (size > file.size() - at - 12) break;
    const auto data = file.subspan(at + 8, size);
    if (type == "eXIf") exif = data;
    if (type == "iTXt") {
      if (const auto text = itxt(data, "XML:com.adobe.xmp"); !text.empty()) xmp = text;
    }
    at += 12 + size;
  }
  return orientation_of(exif, xmp);
}

}  // namespace

// What is alive across a longjmp lives here, not on the stack of decode().
struct PngDecoder::Reading {
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::span<const std::byte> rest;
  bool truncated = false;
  char message[128] = {};

  ~Reading() { png_destroy_read_struct(&png, &info, nullptr); }
};

namespace {

template <typename Reading>
[[noreturn]] void on_error(png_structp png, png_const_charp text) {
  auto& reading = *static_cast<Reading*>(png_get_error_ptr(png));
  std::strncpy(reading.message, text, sizeof reading.message - 1);
  png_longjmp(png, 1);
}

void on_warning(png_structp, png_const_charp) {}

template <typename Reading>
void read_bytes(png_structp png, png_bytep out, std::size_t count) {
  auto& reading = *static_cast<Reading*>(png_get_io_ptr(png));
  if (count > reading.rest.size()) {
    reading.truncated = true;
    png_error(png, "the file ends before the image does");
  }
  std::memcpy(out, reading.rest.data(), count);
  reading.rest = reading.rest.subspan(count);
}

}  // namespace

std::optional<Rejection> PngDecoder::open(std::span<const std::byte> file, ImageHeader& header) {
  // Signature, then IHDR: length 13, type, width, height.
  if (file.size() < kSignatureBytes + 25 || as_text(file.subspan(kSignatureBytes + 4, 4)) != "IHDR"sv) {
    return Rejection{"decode", "the file has no PNG header"};
  }
  header.width = big_endian(file.subspan(kSignatureBytes + 8));
  header.height = big_endian(file.subspan(kSignatureBytes + 12));
  if (header.width == 0 || header.height == 0) return Rejection{"decode", "the image has no size"};
  header.orientation = find_orientation(file);
  file_ = file;
  header_ = header;
  return std::nullopt;
}

std::optional<Rejection> PngDecoder::decode(const Region& region, RowSink& sink) {
  Reading reading;
  reading.rest = file_;
  reading.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reading, on_error<Reading>, on_warning);
  if (reading.png != nullptr) reading.info = png_create_info_struct(reading.png);
  if (reading.info == nullptr) throw std::bad_alloc();
  if (setjmp(png_jmpbuf(reading.png)) != 0) return Rejection{"decode", reading.message};
  read_rows(reading, region, sink);
  return std::nullopt;
}

void PngDecoder::read_rows(Reading& reading, const Region& region, RowSink& sink) {
  png_structp png = reading.png;
  png_set_read_fn(png, &reading, read_bytes<Reading>);
  // The size was checked by the caller; all ancillary chunks are passed over, but their checksums count.
  png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_set_crc_action(png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
  png_read_info(png, reading.info);
  png_set_expand(png);
  png_set_strip_16(png);  // keeps the high byte, as Pillow does for RGB
  png_set_strip_alpha(png);
  png_set_gray_to_rgb(png);
  png_set_filler(png, 0xff, PNG_FILLER_AFTER);
  const bool interlaced = png_set_interlace_handling(png) > 1;
  png_read_update_info(png, reading.info);

  const std::size_t row_bytes = std::size_t{header_.width} * kPixelBytes;
  if (png_get_rowbytes(png, reading.info) != row_bytes) png_error(png, "the rows have another size than the header says");
  pixels_.resize((interlaced ? header_.height : 1) * row_bytes + kRowSlack);
  const auto hand_over = [&](std::uint32_t y, const std::uint8_t* row) {
    if (y >= region.y && y - region.y < region.height) sink.take_row(row + std::size_t{region.x} * kPixelBytes);
  };
  if (!interlaced) {
    for (std::uint32_t y = 0; y < header_.height; ++y) {
      png_read_row(png, pixels_.data(), nullptr);
      hand_over(y, pixels_.data());
    }
    return;
  }
  for (int pass = 0; pass < PNG_INTERLACE_ADAM7_PASSES; ++pass) {
    for (std::uint32_t y = 0; y < header_.height; ++y) {
      png_read_row(png, pixels_.data() + y * row_bytes, nullptr);
    }
  }
  for (std::uint32_t y = 0; y < header_.height; ++y) hand_over(y, pixels_.data() + y * row_bytes);
}

}  // namespace precache
