// SPDX-License-Identifier: Apache-2.0
#include "convert/image/decode/jpeg_decoder.hpp"

// clang-format off
#include <cstdio>
#include <jpeglib.h>  // needs <cstdio> before it
#include <jerror.h>
// clang-format on

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

namespace precache {
namespace {

// A progressive file may repeat scans without end, and each costs a pass over the image.
constexpr int kMostScans = 500;

struct ErrorManager {
  jpeg_error_mgr base;  // first, as libjpeg knows only this
  std::jmp_buf escape;
  bool out_of_memory;
  bool truncated;
  bool rows_are_done;  // the file may end from here on
  char message[JMSG_LENGTH_MAX];
};

ErrorManager& errors_of(j_common_ptr info) { return *reinterpret_cast<ErrorManager*>(info->err); }

[[noreturn]] void on_error(j_common_ptr info) {
  ErrorManager& errors = errors_of(info);
  errors.out_of_memory = errors.base.msg_code == JERR_OUT_OF_MEMORY;
  errors.base.format_message(info, errors.message);
  std::longjmp(errors.escape, 1);
}

[[noreturn]] void on_truncation(j_decompress_ptr info) {
  ErrorManager& errors = errors_of(reinterpret_cast<j_common_ptr>(info));
  errors.truncated = true;
  std::longjmp(errors.escape, 1);
}

boolean fill_buffer(j_decompress_ptr info) { on_truncation(info); }

void skip_bytes(j_decompress_ptr info, long count) {
  if (count <= 0) return;
  if (static_cast<std::size_t>(count) > info->src->bytes_in_buffer) on_truncation(info);
  info->src->next_input_byte += count;
  info->src->bytes_in_buffer -= static_cast<std::size_t>(count);
}

void check_scans(j_common_ptr info) {
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMostScans) return;
  ErrorManager& errors = errors_of(info);
  std::snprintf(errors.message, sizeof errors.message, "more than %d scans", kMostScans);
  std::longjmp(errors.escape, 1);
}

// Pillow's arithmetic; the values of CMYK files are stored inverted by convention.
void cmyk_to_rgbx(std::uint8_t* pixels, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i, pixels += kPixelBytes) {
    const int black = pixels[3];
    for (int c = 0; c < 3; ++c) {
      const int scaled = (255 - pixels[c]) * black + 128;
      pixels[c] = static_cast<std::uint8_t>(black - ((scaled >> 8) + scaled) / 256);
    }
    pixels[3] = 255;
  }
}

}  // namespace

// Everything that must survive a longjmp is here and not on the stack.
struct JpegDecoder::Impl {
  jpeg_decompress_struct info{};
  ErrorManager errors{};
  jpeg_source_mgr source{};
  jpeg_progress_mgr progress{};
  std::span<const std::byte> file;
  ImageHeader header;
  std::vector<std::uint8_t> row_memory;
  std::uint8_t* row = nullptr;

  Impl() {
    info.err = jpeg_std_error(&errors.base);
    errors.base.error_exit = on_error;
    errors.base.output_message = [](j_common_ptr) {};
    source.init_source = [](j_decompress_ptr) {};
    source.fill_input_buffer = fill_buffer;
    source.skip_input_data = skip_bytes;
    source.resync_to_restart = jpeg_resync_to_restart;
    source.term_source = [](j_decompress_ptr) {};
    progress.progress_monitor = check_scans;
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() { jpeg_destroy_decompress(&info); }

  void start();
  void make_row(std::size_t pixels);
  void read_region(const Region& region, RowSink& sink);
  /// Whether libjpeg will smooth over coefficients that a progressive file lacks. It uses
  /// neighbouring blocks for that, which differ if only a region is decoded.
  [[nodiscard]] bool smooths_blocks() const;
  /// Reads on to the last row and the end of the image, so that libjpeg sees every byte of it.
  void read_rest();
  /// Whether only coded data of this scan follows, up to an EOI that ends the file. Nothing there
  /// can fail, because libjpeg only warns about bad codes.
  [[nodiscard]] bool rest_is_coded_data() const;
};

void JpegDecoder::Impl::start() {
  // A new object for each image: a used one would lend its tables to files without their own, such
  // as MJPEG frames.
  jpeg_destroy_decompress(&info);  // still in use if a sink has thrown
  jpeg_create_decompress(&info);
  info.src = &source;
  info.progress = &progress;
  source.next_input_byte = reinterpret_cast<const JOCTET*>(file.data());
  source.bytes_in_buffer = file.size();
  jpeg_read_header(&info, TRUE);
  if (info.image_width != header.width || info.image_height != header.height) {
    std::snprintf(errors.message, sizeof errors.message, "the file has two image sizes");
    std::longjmp(errors.escape, 1);
  }
  info.out_color_space = info.num_components == 4 ? JCS_CMYK : JCS_EXT_RGBX;
  info.dct_method = JDCT_ISLOW;
  info.do_fancy_upsampling = TRUE;
  jpeg_start_decompress(&info);
}

// libjpeg-turbo writes rows that are aligned for its vectors past the caches (movntdq), and the
// resampler then waits for memory: decode and resize took a quarter longer (docs/performance.md).
// So rows are never aligned.
void JpegDecoder::Impl::make_row(std::size_t pixels) {
  constexpr std::size_t kLargestVector = 64;
  row_memory.resize(pixels * kPixelBytes + kRowSlack + 2 * kLargestVector);
  void* aligned = row_memory.data();
  std::size_t space = row_memory.size();
  std::align(kLargestVector, 1, aligned, space);
  row = static_cast<std::uint8_t*>(aligned) + 2 * kPixelBytes;
}

void JpegDecoder::Impl::read_region(const Region& region, RowSink& sink) {
  const bool whole = smooths_blocks();
  // Upsampling uses the neighbouring pixel, which is missing at a cut: decode one pixel more.
  JDIMENSION left = region.x == 0 ? 0 : region.x - 1;
  // libjpeg also upsamples very narrow images in another way.
  constexpr JDIMENSION kNarrow = 16;
  const JDIMENSION right = std::max(region.x + region.width + 1, left + kNarrow);
  JDIMENSION width = std::min(right, info.output_width) - left;
  if (width < info.output_width && !whole) {
    jpeg_crop_scanline(&info, &left, &width);
  } else {
    left = 0;
  }
  make_row(info.output_width);
  JSAMPROW rows[] = {row};
  const JDIMENSION margin = region.y == 0 ? 0 : 1;
  if (region.y > margin && !whole) jpeg_skip_scanlines(&info, region.y - margin);
  while (info.output_scanline < region.y) jpeg_read_scanlines(&info, rows, 1);
  for (std::uint32_t y = 0; y < region.height; ++y) {
    jpeg_read_scanlines(&info, rows, 1);
    if (info.out_color_space == JCS_CMYK) cmyk_to_rgbx(row, info.output_width);
    sink.take_row(row + std::size_t{region.x - left} * kPixelBytes);
  }
}

bool JpegDecoder::Impl::smooths_blocks() const {
  if (!info.progressive_mode || info.coef_bits == nullptr) return false;
  constexpr int kSmoothedCoefficients = 9;
  for (int component = 0; component < info.num_components; ++component) {
    for (int i = 1; i <= kSmoothedCoefficients; ++i) {
      if (info.coef_bits[component][i] != 0) return true;
    }
  }
  return false;
}

void JpegDecoder::Impl::read_rest() {
  const JDIMENSION remaining = info.output_height - info.output_scanline;
  // Skipping to the very end would not read the data any more.
  if (remaining > 1) jpeg_skip_scanlines(&info, remaining - 1);
  JSAMPROW rows[] = {row};
  if (remaining > 0) jpeg_read_scanlines(&info, rows, 1);
  errors.rows_are_done = true;
  jpeg_finish_decompress(&info);
}

bool JpegDecoder::Impl::rest_is_coded_data() const {
  if (info.unread_marker != 0) return false;
  const JOCTET* at = source.next_input_byte;
  const JOCTET* const end = at + source.bytes_in_buffer;
  for (;;) {
    at = static_cast<const JOCTET*>(std::memchr(at, 0xff, static_cast<std::size_t>(end - at)));
    if (at == nullptr || end - at < 2) return false;
    const JOCTET marker = at[1];
    const bool stuffed_or_restart = marker == 0 || (marker >= JPEG_RST0 && marker <= JPEG_RST0 + 7);
    if (!stuffed_or_restart) return marker == JPEG_EOI && end - at == 2;
    at += 2;
  }
}

JpegDecoder::JpegDecoder() : impl_(std::make_unique<Impl>()) {}
JpegDecoder::~JpegDecoder() = default;

std::optional<Rejection> JpegDecoder::open(std::span<const std::byte> file, ImageHeader& header) {
  impl_->file = file;
  auto rejection = read_jpeg_header(file, header);
  impl_->header = header;
  return rejection;
}

bool JpegDecoder::warned() const { return impl_->errors.base.num_warnings > 0; }

std::optional<Rejection> JpegDecoder::decode(const Region& region, RowSink& sink) {
  Impl& impl = *impl_;
  impl.errors.out_of_memory = false;
  impl.errors.truncated = false;
  impl.errors.rows_are_done = false;
  // libjpeg jumps here on errors; no object with a destructor is alive in between.
  if (setjmp(impl.errors.escape) != 0) {
    jpeg_destroy_decompress(&impl.info);
    if (impl.errors.out_of_memory) throw std::bad_alloc();
    if (impl.errors.truncated && impl.errors.rows_are_done) return std::nullopt;
    if (impl.errors.truncated)
      return Rejection{RejectionStage::kDecode, "the file ends before the image does"};
    return Rejection{RejectionStage::kDecode, impl.errors.message};
  }
  impl.start();
  impl.read_region(region, sink);
  if (!impl.rest_is_coded_data()) impl.read_rest();
  jpeg_destroy_decompress(&impl.info);
  return std::nullopt;
}

}  // namespace precache
