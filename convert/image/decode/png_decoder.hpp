// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "convert/image/decode/image_decoder.hpp"

namespace precache {

/// Walks all chunks of a PNG file for its size and orientation. Rejects files that Pillow refuses
/// to open: chunks that run past the end of the file, and text that inflates without bounds.
[[nodiscard]] std::optional<Rejection> read_png_metadata(std::span<const std::byte> file,
                                                         ImageHeader& header);

/// Decodes PNG with libpng to eight bits per channel, without alpha, transparency or colour
/// management.
class PngDecoder : public ImageDecoder {
 public:
  enum class Pixels {
    kColors,
    /// The gray value as it is stored, or the index in the palette, in all channels: 0 and 1 for
    /// pixels of one bit. Rejects other images.
    kNumbers
  };
  explicit PngDecoder(Pixels pixels = Pixels::kColors) : kind_(pixels) {}

  std::optional<Rejection> open(std::span<const std::byte> file, ImageHeader& header) override;
  std::optional<Rejection> decode(const Region& region, RowSink& sink) override;
  /// libpng does not warn about pixels.
  [[nodiscard]] bool warned() const override { return false; }

 private:
  Pixels kind_;
  std::span<const std::byte> file_;
  ImageHeader header_;
  std::vector<std::uint8_t> pixels_;  // one row, or the whole image if it is interlaced
};

}  // namespace precache
