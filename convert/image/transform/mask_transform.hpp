// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "convert/image/decode/png_decoder.hpp"
#include "convert/image/transform/image_transform.hpp"

namespace precache {

/// Turns the mask of an image into bytes of the recipe's height and width: the nearest pixels, by
/// the geometry of the image, and 255 where the image is padded. Reusable for any number of masks,
/// by one thread at a time.
class MaskTransform {
 public:
  MaskTransform(const Recipe& recipe, std::uint64_t max_pixels);

  /// Writes the mask in the PNG file, or returns why it cannot. The mask may be larger or smaller
  /// than its image if it has the same aspect, to a pixel.  REQUIRES: `mask` has height x width
  /// bytes; `image` is the header of the image.
  std::optional<Rejection> run(std::span<const std::byte> png, const ImageHeader& image,
                               std::span<std::byte> mask);

 private:
  /// Masks are turned as their images are.
  class Decoder : public ImageDecoder {
   public:
    std::optional<Rejection> open(std::span<const std::byte> file, ImageHeader& header) override;
    std::optional<Rejection> decode(const Region& region, RowSink& sink) override {
      return png_.decode(region, sink);
    }
    [[nodiscard]] bool warned() const override { return false; }
    void expect(const ImageHeader& image) { image_ = image; }

   private:
    PngDecoder png_{PngDecoder::Pixels::kNumbers};
    ImageHeader image_;
  };

  Decoder decoder_;
  ImageTransform transform_;
};

}  // namespace precache
