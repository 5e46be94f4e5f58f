// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "convert/image/decode/image_decoder.hpp"

namespace precache {

/// Decodes PNG with libpng to eight bits a channel: alpha and transparency dropped, no colour
/// management.
class PngDecoder : public ImageDecoder {
 public:
  std::optional<Rejection> open(std::span<const std::byte> file, ImageHeader& header) override;
  std::optional<Rejection> decode(const Region& region, RowSink& sink) override;
  [[nodiscard]] bool warned() const override {
    return false;
  }  // what libpng warns of are no pixels

 private:
  struct Reading;
  void read_rows(Reading& reading, const Region& region, RowSink& sink);

  std::span<const std::byte> file_;
  ImageHeader header_;
  std::vector<std::uint8_t> pixels_;  // one row, or the whole image if it is interlaced
};

}  // namespace precache
