// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "convert/image/decode/image_decoder.hpp"

namespace precache {

/// Reads the segments of a JPEG file up to its first scan, as strictly as Pillow: files that Pillow
/// refuses to open are rejected here, too. libjpeg would tell size and orientation later or not at
/// all.
[[nodiscard]] std::optional<Rejection> read_jpeg_header(std::span<const std::byte> file,
                                                        ImageHeader& header);

/// Decodes JPEG with libjpeg-turbo to the pixels that Pillow gives: accurate DCT, fancy upsampling.
class JpegDecoder : public ImageDecoder {
 public:
  JpegDecoder();
  ~JpegDecoder() override;
  std::optional<Rejection> open(std::span<const std::byte> file, ImageHeader& header) override;
  std::optional<Rejection> decode(const Region& region, RowSink& sink) override;
  [[nodiscard]] bool warned() const override;

 private:
  struct Impl;  // jpeglib.h stays out of every includer
  std::unique_ptr<Impl> impl_;
};

}  // namespace precache
