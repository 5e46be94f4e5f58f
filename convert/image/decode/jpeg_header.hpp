// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "convert/image/decode/image_decoder.hpp"

namespace precache {

/// Walks the segments of a JPEG file up to its first scan, as strictly as Pillow does: so that what
/// Pillow refuses to open is refused here too, and for the size and orientation, which libjpeg
/// would tell later or not at all.
class JpegHeaderReader {
 public:
  std::optional<Rejection> read(std::span<const std::byte> file, ImageHeader& header);

 private:
  std::vector<std::byte> exif_;  // kept for its capacity
};

}  // namespace precache
