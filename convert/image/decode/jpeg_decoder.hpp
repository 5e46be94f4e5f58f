// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "convert/image/decode/image_decoder.hpp"

namespace precache {

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
