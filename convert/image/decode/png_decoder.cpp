// SPDX-License-Identifier: Apache-2.0
#include "convert/image/decode/png_decoder.hpp"

#include <png.h>

#include <csetjmp>
#include <cstdlib>
#include <cstring>
#include <new>

namespace precache {
namespace {

// Everything that must survive a longjmp is here and not on the stack of decode().
struct Reading {
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::span<const std::byte> rest;
  bool out_of_memory = false;
  char message[128] = {};

  ~Reading() { png_destroy_read_struct(&png, &info, nullptr); }
};

[[noreturn]] void on_error(png_structp png, png_const_charp text) {
  auto& reading = *static_cast<Reading*>(png_get_error_ptr(png));
  std::strncpy(reading.message, text, sizeof reading.message - 1);
  png_longjmp(png, 1);
}

void on_warning(png_structp, png_const_charp) {}

// Without this, libpng would report a lack of memory as a fault of the file.
void* allocate(png_structp png, png_alloc_size_t size) {
  void* memory = std::malloc(size);
  if (memory == nullptr) static_cast<Reading*>(png_get_mem_ptr(png))->out_of_memory = true;
  return memory;
}

void release(png_structp, void* memory) { std::free(memory); }

void read_bytes(png_structp png, png_bytep out, std::size_t count) {
  auto& reading = *static_cast<Reading*>(png_get_io_ptr(png));
  if (count > reading.rest.size()) {
    png_error(png, "the file ends before the image does");
  }
  std::memcpy(out, reading.rest.data(), count);
  reading.rest = reading.rest.subspan(count);
}

void ask_for_colors(png_structp png) {
  png_set_expand(png);
  png_set_strip_16(png);  // keeps the high byte, as Pillow does for RGB
  png_set_strip_alpha(png);
  png_set_gray_to_rgb(png);
  png_set_filler(png, 0xff, PNG_FILLER_AFTER);
}

void ask_for_numbers(png_structp png, png_infop info) {
  const int type = png_get_color_type(png, info);
  const bool is_palette = type == PNG_COLOR_TYPE_PALETTE;
  if (!is_palette && (type != PNG_COLOR_TYPE_GRAY || png_get_bit_depth(png, info) > 8)) {
    png_error(png, "it has neither a palette nor gray values of at most 8 bits");
  }
  png_set_packing(png);  // one byte for each pixel; gray values are not scaled to 0..255
}

/// Turns a row of numbers, which begins the buffer, into pixels; from its end, as they are larger.
void widen(std::uint8_t* row, std::uint32_t width) {
  for (std::size_t x = width; x-- > 0;) {
    std::memset(row + x * kPixelBytes, row[x], kPixelBytes);
  }
}

/// `pixels` gets one row, or the whole image if it is interlaced.
void read_rows(Reading& reading, PngDecoder::Pixels kind, const ImageHeader& header,
               const Region& region, RowSink& sink, std::vector<std::uint8_t>& pixels) {
  const bool is_numbers = kind == PngDecoder::Pixels::kNumbers;
  png_structp png = reading.png;
  png_set_read_fn(png, &reading, read_bytes);
  // The caller has checked the size. Ancillary chunks are skipped, but their checksums count.
  png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
  png_set_crc_action(png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
  png_read_info(png, reading.info);
  is_numbers ? ask_for_numbers(png, reading.info) : ask_for_colors(png);
  const bool interlaced = png_set_interlace_handling(png) > 1;
  png_read_update_info(png, reading.info);

  const std::size_t row_bytes = std::size_t{header.width} * kPixelBytes;
  if (png_get_rowbytes(png, reading.info) != (is_numbers ? header.width : row_bytes))
    png_error(png, "the row size does not match the header");
  pixels.resize((interlaced ? header.height : 1) * row_bytes + kRowSlack);
  const auto hand_over = [&](std::uint32_t y, std::uint8_t* row) {
    if (y < region.y || y - region.y >= region.height) return;
    if (is_numbers) widen(row, header.width);
    sink.take_row(row + std::size_t{region.x} * kPixelBytes);
  };
  if (!interlaced) {
    for (std::uint32_t y = 0; y < header.height; ++y) {
      png_read_row(png, pixels.data(), nullptr);
      hand_over(y, pixels.data());
    }
    return;
  }
  for (int pass = 0; pass < PNG_INTERLACE_ADAM7_PASSES; ++pass) {
    for (std::uint32_t y = 0; y < header.height; ++y) {
      png_read_row(png, pixels.data() + y * row_bytes, nullptr);
    }
  }
  for (std::uint32_t y = 0; y < header.height; ++y) hand_over(y, pixels.data() + y * row_bytes);
}

}  // namespace

std::optional<Rejection> PngDecoder::open(std::span<const std::byte> file, ImageHeader& header) {
  if (auto rejection = read_png_metadata(file, header)) return rejection;
  file_ = file;
  header_ = header;
  return std::nullopt;
}

std::optional<Rejection> PngDecoder::decode(const Region& region, RowSink& sink) {
  shrink_if_large(pixels_);
  Reading reading;
  reading.rest = file_;
  reading.png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &reading, on_error, on_warning,
                                         &reading, allocate, release);
  if (reading.png != nullptr) reading.info = png_create_info_struct(reading.png);
  if (reading.info == nullptr) throw std::bad_alloc();
  if (setjmp(png_jmpbuf(reading.png)) != 0) {
    if (reading.out_of_memory) throw std::bad_alloc();
    return Rejection{RejectionStage::kDecode, reading.message};
  }
  read_rows(reading, kind_, header_, region, sink, pixels_);
  return std::nullopt;
}

}  // namespace precache
