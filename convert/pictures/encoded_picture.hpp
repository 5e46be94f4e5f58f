// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "convert/image/decode/image_decoder.hpp"
#include "precache/convert/pictures.hpp"

namespace precache {

/// Looks at encoded images. Reusable for any number of them, by one thread at a time.
class EncodedPainter {
 public:
  using ByteCounts = std::array<std::array<std::uint64_t, 256>, 3>;

  EncodedPainter();
  ~EncodedPainter();

  /// None, and why, if it is no image that we decode.
  [[nodiscard]] std::optional<Rejection> read_header(std::span<const std::byte> file,
                                                     ImageHeader& header);
  /// Adds the values of all pixels.
  [[nodiscard]] std::optional<Rejection> count(std::span<const std::byte> file, ByteCounts& counts);
  /// A picture that fits a square of kTileSide, upright.
  [[nodiscard]] std::optional<Rejection> paint(std::span<const std::byte> file, Picture& picture);

 private:
  std::unique_ptr<ImageDecoder> jpeg_;
  std::unique_ptr<ImageDecoder> png_;
};

}  // namespace precache
