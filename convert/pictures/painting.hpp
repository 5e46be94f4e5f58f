// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "convert/image/decode/jpeg_decoder.hpp"
#include "convert/image/decode/png_decoder.hpp"
#include "precache/convert/pictures.hpp"

namespace precache {

inline constexpr std::size_t kColors = 3;  // values of a pixel in Picture::rgb

/// Turns tensors into pictures: uint8 as they are; floats by their recipe, else by the range of
/// their values. One channel is drawn grey; of more than three, the first three are drawn.
class TensorPainter {
 public:
  /// REQUIRES: the facts have a spec.
  explicit TensorPainter(const Inspection& facts);

  /// How values become pixels, in words; empty if they are pixels.
  [[nodiscard]] const std::string& drawing() const { return drawing_; }
  /// A picture that fits a square of kTileSide.  REQUIRES: `tensor` has the size of the spec.
  [[nodiscard]] Picture paint(std::span<const std::byte> tensor) const;

 private:
  struct Line {
    float scale = 1;
    float offset = 0;
  };
  void choose_lines(const Inspection& facts);
  [[nodiscard]] float value(std::span<const std::byte> tensor, std::size_t element) const;

  TensorSpec spec_;
  Line lines_[kColors];  // pixel = value * scale + offset, by channel
  std::string drawing_;
};

/// Decodes encoded images. Reusable for any number of them, by one thread at a time.
class EncodedPainter {
 public:
  using ByteCounts = std::array<std::array<std::uint64_t, 256>, kColors>;

  /// Rejects files that are not images of a supported kind.
  [[nodiscard]] std::optional<Rejection> read_header(std::span<const std::byte> file,
                                                     ImageHeader& header);
  /// Adds the values of all pixels.
  [[nodiscard]] std::optional<Rejection> count(std::span<const std::byte> file, ByteCounts& counts);
  /// A picture that fits a square of kTileSide, upright.
  [[nodiscard]] std::optional<Rejection> paint(std::span<const std::byte> file, Picture& picture);

 private:
  ImageDecoder* decoder_ = nullptr;  // of the last header
  JpegDecoder jpeg_;
  PngDecoder png_;
};

/// The width and height to which a picture is scaled: the longer side to kTileSide, but up by whole
/// numbers only.  REQUIRES: no side is 0.
[[nodiscard]] std::pair<std::uint32_t, std::uint32_t> tile_size(std::uint32_t width,
                                                                std::uint32_t height);

/// Scales down by averaging, or up by repeating pixels.  REQUIRES: the picture is not empty.
[[nodiscard]] Picture fit_tile(const Picture& picture);

/// The bytes of a PNG file.  REQUIRES: the picture is not empty. Throws std::runtime_error if
/// libpng fails.
[[nodiscard]] std::string encode_png(const Picture& picture);

/// A small bitmap font for ASCII; all letters have the same width.
namespace bitmap_font {

inline constexpr std::uint32_t kWidth = 5;
inline constexpr std::uint32_t kHeight = 9;   // two of the rows are below the base line
inline constexpr std::uint32_t kAdvance = 6;  // from letter to letter

/// Whether a pixel of a letter is set; all but printable ASCII is drawn as a box.
/// REQUIRES: x < kWidth, y < kHeight.
[[nodiscard]] bool is_set(char letter, std::uint32_t x, std::uint32_t y);

}  // namespace bitmap_font

}  // namespace precache
