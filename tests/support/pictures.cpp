// SPDX-License-Identifier: Apache-2.0
#include "tests/support/pictures.hpp"

// clang-format off
#include <cstdio>
#include <jpeglib.h>  // needs <cstdio> before it
// clang-format on
#include <png.h>

#include <cmath>
#include <cstdlib>

namespace precache::test {
namespace {

void append_png(png_structp png, png_bytep data, std::size_t size) {
  auto& bytes = *static_cast<Bytes*>(png_get_io_ptr(png));
  const auto* begin = reinterpret_cast<const std::byte*>(data);
  bytes.insert(bytes.end(), begin, begin + size);
}

std::uint8_t* row_of(const Picture& picture, std::uint32_t y) {
  return const_cast<std::uint8_t*>(picture.pixel(0, y));
}

}  // namespace

Picture make_picture(std::uint32_t width, std::uint32_t height, std::uint32_t channels,
                     std::uint64_t seed) {
  Random random(seed + 1);
  Picture picture{width, height, channels, {}};
  picture.samples.reserve(std::size_t{width} * height * channels);
  const double phase = static_cast<double>(seed % 100) * 0.37;
  for (std::uint32_t y = 0; y < height; ++y) {
    for (std::uint32_t x = 0; x < width; ++x) {
      for (std::uint32_t c = 0; c < channels; ++c) {
        const double wave = std::sin(x * 0.11 * (c + 1) + phase) * std::cos(y * 0.07 + c + phase);
        const double noise = static_cast<double>(below(random, 17)) - 8;
        picture.samples.push_back(static_cast<std::uint8_t>(128 + 100 * wave + noise));
      }
    }
  }
  return picture;
}

Bytes encode_png(const Picture& picture, bool interlaced) {
  constexpr int kColorTypes[] = {PNG_COLOR_TYPE_GRAY, -1, PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGBA};
  Bytes bytes;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(png, &bytes, append_png, nullptr);
  png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
  png_set_IHDR(png, info, picture.width, picture.height, 8, kColorTypes[picture.channels - 1],
               interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  const int passes = png_set_interlace_handling(png);
  for (int pass = 0; pass < passes; ++pass) {
    for (std::uint32_t y = 0; y < picture.height; ++y) png_write_row(png, row_of(picture, y));
  }
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return bytes;
}

Bytes encode_jpeg(const Picture& picture, const JpegOptions& options) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &memory, &size);
  info.image_width = picture.width;
  info.image_height = picture.height;
  info.input_components = static_cast<int>(picture.channels);
  info.in_color_space = picture.channels == 1   ? JCS_GRAYSCALE
                        : picture.channels == 3 ? JCS_RGB
                                                : JCS_CMYK;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, options.quality, TRUE);
  if (picture.channels == 3) {
    info.comp_info[0].h_samp_factor = options.horizontal_sampling;
    info.comp_info[0].v_samp_factor = options.vertical_sampling;
  }
  info.restart_in_rows = options.restart_rows;
  if (options.progressive) jpeg_simple_progression(&info);
  // The scans of a progressive file with only the mean values of blocks, or those without the last
  // bit.
  const int last_bit = options.means_only ? 0 : 1;
  jpeg_scan_info scan{info.num_components, {0, 1, 2, 3}, 0, 0, 0, last_bit};
  if (options.means_only || options.coarse_means_only) {
    info.scan_info = &scan;
    info.num_scans = 1;
  }
  jpeg_start_compress(&info, TRUE);
  if (!options.app1.empty()) {
    jpeg_write_marker(&info, JPEG_APP0 + 1, reinterpret_cast<const JOCTET*>(options.app1.data()),
                      static_cast<unsigned>(options.app1.size()));
  }
  while (info.next_scanline < info.image_height) {
    JSAMPROW rows[] = {row_of(picture, info.next_scanline)};
    jpeg_write_scanlines(&info, rows, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  const auto* begin = reinterpret_cast<const std::byte*>(memory);
  Bytes bytes(begin, begin + size);
  std::free(memory);
  return bytes;
}

std::vector<std::uint8_t> decode_jpeg_plainly(std::span<const std::byte> file) {
  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  errors.output_message = [](j_common_ptr) {};
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, reinterpret_cast<const unsigned char*>(file.data()), file.size());
  jpeg_read_header(&info, TRUE);
  info.out_color_space = JCS_EXT_RGBX;
  info.dct_method = JDCT_ISLOW;
  jpeg_start_decompress(&info);
  const std::size_t row_bytes = std::size_t{info.output_width} * 4;
  std::vector<std::uint8_t> pixels(row_bytes * info.output_height);
  while (info.output_scanline < info.output_height) {
    JSAMPROW rows[] = {&pixels[info.output_scanline * row_bytes]};
    jpeg_read_scanlines(&info, rows, 1);
  }
  jpeg_destroy_decompress(&info);
  return pixels;
}

Bytes exif_with_orientation(int orientation, bool little_endian) {
  Bytes bytes = bytes_of(std::string_view("Exif\0\0", 6));
  const auto put = [&](std::uint32_t value, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t shift = 8 * (little_endian ? i : size - 1 - i);
      bytes.push_back(static_cast<std::byte>(value >> shift));
    }
  };
  put(little_endian ? 0x4949 : 0x4d4d, 2);
  put(42, 2);
  put(8, 4);       // offset of the directory
  put(1, 2);       // entries
  put(0x0112, 2);  // orientation
  put(3, 2);       // a 16-bit number
  put(1, 4);
  put(static_cast<std::uint32_t>(orientation), 2);
  put(0, 2);
  put(0, 4);  // no further directory
  return bytes;
}

}  // namespace precache::test
