// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "precache/convert/pictures.hpp"

namespace precache {

inline constexpr std::size_t kColors = 3;  // values of a pixel in Picture::rgb

/// Makes pixels of tensors: of uint8 as they are; of floats as the recipe says they came about,
/// else by the values that were found in them. One channel is grey, of more than three the first
/// three are drawn.
class TensorPainter {
 public:
  /// REQUIRES: the facts have a spec.
  explicit TensorPainter(const Inspection& facts);

  /// How values become pixels, in words; empty where they are pixels.
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
  [[nodiscard]] Picture thinned(std::span<const std::byte> tensor) const;

  TensorSpec spec_;
  Line lines_[3];  // pixel = value * scale + offset, by channel
  std::string drawing_;
};

/// What a picture is scaled to: the longer side to kTileSide, but up by whole numbers only.
struct TileSize {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
};
/// REQUIRES: no side is 0.
[[nodiscard]] TileSize tile_size(std::uint32_t width, std::uint32_t height);

/// Scaled down by averaging, or up by repeating pixels.  REQUIRES: the picture is not empty.
[[nodiscard]] Picture fit_tile(const Picture& picture);

}  // namespace precache
