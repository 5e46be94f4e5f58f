// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "tests/support/bytes.hpp"

namespace precache::test {

/// An image that tests make: `channels` samples of eight bits for each pixel, row by row.
struct Picture {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::uint32_t channels = 3;
  std::vector<std::uint8_t> samples;

  [[nodiscard]] const std::uint8_t* pixel(std::uint32_t x, std::uint32_t y) const {
    return &samples[(std::size_t{y} * width + x) * channels];
  }
};

/// Soft waves with some noise: no two neighbouring pixels are equal, and JPEG files are small.
[[nodiscard]] Picture make_picture(std::uint32_t width, std::uint32_t height,
                                   std::uint32_t channels = 3, std::uint64_t seed = 0);

/// Gray, RGB or RGBA by the number of channels.
[[nodiscard]] Bytes encode_png(const Picture& picture, bool interlaced = false);

struct JpegOptions {
  int quality = 90;
  int horizontal_sampling = 2;  // of luma
  int vertical_sampling = 2;
  bool progressive = false;
  int restart_rows = 0;
  Bytes app1 = {};                 // a segment before the image, such as EXIF
  bool means_only = false;         // leaves out all but the mean of each block
  bool coarse_means_only = false;  // and the last bit of that
};

/// Gray, YCbCr or CMYK by the number of channels.
[[nodiscard]] Bytes encode_jpeg(const Picture& picture, const JpegOptions& options = {});

/// All rows by libjpeg alone, as four bytes a pixel (RGBX). REQUIRES: a valid file that is not
/// CMYK.
[[nodiscard]] std::vector<std::uint8_t> decode_jpeg_plainly(std::span<const std::byte> file);

/// An APP1 payload with just an orientation in it.
[[nodiscard]] Bytes exif_with_orientation(int orientation, bool little_endian = true);

}  // namespace precache::test
