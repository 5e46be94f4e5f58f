// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "convert/pictures/painting.hpp"
#include "formats/bytes/number_text.hpp"
#include "precache/convert/pictures.hpp"
#include "precache/formats/error.hpp"
#include "precache/tools/inspect.hpp"

namespace precache {
namespace {

using Colour = std::array<std::uint8_t, 3>;
constexpr Colour kPaper{250, 250, 248};
constexpr Colour kCard{236, 236, 232};
constexpr Colour kInk{32, 33, 36};
constexpr Colour kFaint{110, 112, 118};

constexpr std::uint32_t kGap = 16;
constexpr std::uint32_t kMostColumns = 6;
constexpr std::uint32_t kFewestColumns = 3;  // leaves room for the heading
constexpr std::uint32_t kLine = bitmap_font::kHeight * 2 + 4;
constexpr std::uint32_t kSmallLine = bitmap_font::kHeight + 4;
constexpr std::uint64_t kLargestHeight = 100'000;
constexpr std::uint32_t kHead = kLine + kSmallLine + kGap;
constexpr std::uint32_t kCaption = kLine + kSmallLine + 4;

class Canvas {
 public:
  Canvas(std::uint32_t width, std::uint32_t height) : picture_{width, height, {}} {
    picture_.rgb.resize(std::size_t{width} * height * 3);
    fill(0, 0, width, height, kPaper);
  }
  [[nodiscard]] const Picture& picture() const { return picture_; }

  void set(std::uint32_t x, std::uint32_t y, const Colour& colour) {
    if (x >= picture_.width || y >= picture_.height) return;
    std::ranges::copy(colour, picture_.rgb.begin() + static_cast<std::ptrdiff_t>(at(x, y)));
  }
  void fill(std::uint32_t x, std::uint32_t y, std::uint32_t width, std::uint32_t height,
            const Colour& colour) {
    for (std::uint32_t row = y; row < y + height; ++row) {
      for (std::uint32_t column = x; column < x + width; ++column) set(column, row, colour);
    }
  }
  void paste(std::uint32_t x, std::uint32_t y, const Picture& other) {
    for (std::uint32_t row = 0; row < other.height; ++row) {
      const auto from = other.rgb.begin() + static_cast<std::ptrdiff_t>(row) * other.width * 3;
      std::copy(from, from + static_cast<std::ptrdiff_t>(other.width) * 3,
                picture_.rgb.begin() + static_cast<std::ptrdiff_t>(at(x, y + row)));
    }
  }
  /// At most `width` pixels of text.
  void write(std::uint32_t x, std::uint32_t y, std::string_view text, std::uint32_t width,
             bool is_large, const Colour& colour) {
    const std::uint32_t scale = is_large ? 2 : 1;
    const std::string shown = shortened(ascii(text), width / (bitmap_font::kAdvance * scale));
    for (const char letter : shown) {
      draw(x, y, letter, scale, colour);
      x += bitmap_font::kAdvance * scale;
    }
  }

 private:
  [[nodiscard]] std::size_t at(std::uint32_t x, std::uint32_t y) const {
    return (std::size_t{y} * picture_.width + x) * 3;
  }
  /// At a scale of 2, a corner between two set neighbours is set as well, and a corner between two
  /// that are not set is left out, so that slanted strokes have no steps.
  void draw(std::uint32_t x, std::uint32_t y, char letter, std::uint32_t scale,
            const Colour& colour) {
    const auto is_set = [&](std::uint32_t column, std::uint32_t row) {  // wraps below 0
      return column < bitmap_font::kWidth && row < bitmap_font::kHeight &&
             bitmap_font::is_set(letter, column, row);
    };
    for (std::uint32_t at_y = 0; at_y < scale * bitmap_font::kHeight; ++at_y) {
      for (std::uint32_t at_x = 0; at_x < scale * bitmap_font::kWidth; ++at_x) {
        const std::uint32_t column = at_x / scale, row = at_y / scale;
        const std::uint32_t dx = at_x % scale == 0 ? -1U : 1U, dy = at_y % scale == 0 ? -1U : 1U;
        const bool nearby = is_set(column + dx, row), opposite = is_set(column - dx, row);
        const bool above = is_set(column, row + dy), below = is_set(column, row - dy);
        const bool is_corner = scale > 1 && nearby == above && nearby != opposite && above != below;
        if (is_corner ? nearby : is_set(column, row)) set(x + at_x, y + at_y, colour);
      }
    }
  }
  static std::string ascii(std::string_view text) {
    std::string result;
    for (const char letter : text) {
      // A letter outside ASCII is drawn as one box, not as one for each of its bytes.
      if ((static_cast<unsigned char>(letter) & 0xc0U) != 0x80U) result += letter;
    }
    return result;
  }

  Picture picture_;
};

std::uint32_t block_height(const Inspected& path, std::uint32_t columns) {
  const auto rows = static_cast<std::uint32_t>((path.preview.tiles.size() + columns - 1) / columns);
  return kHead + rows * (kTileSide + kCaption + kGap);
}

void draw_tile(Canvas& canvas, std::uint32_t x, std::uint32_t y, const Tile& tile) {
  canvas.fill(x, y, kTileSide, kTileSide, kCard);
  if (tile.picture.rgb.empty()) {
    canvas.write(x + 8, y + kTileSide / 2, tile.unsupported_reason, kTileSide - 16, false, kFaint);
  } else {
    canvas.paste(x + (kTileSide - tile.picture.width) / 2,
                 y + (kTileSide - tile.picture.height) / 2, tile.picture);
  }
  y += kTileSide + 6;
  canvas.write(x, y, tile.label.empty() ? "-" : tile.label, kTileSide, true, kInk);
  canvas.write(x, y + kLine, tile.key, kTileSide, false, kFaint);
}

void draw_block(Canvas& canvas, std::uint32_t y, std::uint32_t columns, const Inspected& path) {
  const std::uint32_t width = canvas.picture().width - 2 * kGap;
  canvas.write(kGap, y, path.facts.path.string(), width, true, kInk);
  std::string subtitle = headline(path.facts);
  if (path.facts.samples) {
    subtitle += fmt::format(", {} of {} samples", path.preview.tiles.size(),
                            human::count(*path.facts.samples));
  }
  if (path.facts.spec) subtitle += ", " + path.facts.spec->text();
  if (!path.preview.drawing.empty()) subtitle += "; " + path.preview.drawing;
  canvas.write(kGap, y + kLine, subtitle, width, false, kFaint);
  y += kHead;
  for (std::size_t i = 0; i < path.preview.tiles.size(); ++i) {
    const auto column = static_cast<std::uint32_t>(i % columns);
    const auto row = static_cast<std::uint32_t>(i / columns);
    draw_tile(canvas, kGap + column * (kTileSide + kGap), y + row * (kTileSide + kCaption + kGap),
              path.preview.tiles[i]);
  }
}

}  // namespace

std::string contact_sheet(const std::vector<Inspected>& paths) {
  std::uint32_t columns = kFewestColumns;
  std::uint64_t height = kGap;
  for (const Inspected& path : paths) {
    const auto tiles = std::min<std::size_t>(path.preview.tiles.size(), kMostColumns);
    columns = std::max(columns, static_cast<std::uint32_t>(tiles));
  }
  for (const Inspected& path : paths) height += block_height(path, columns);
  if (height > kLargestHeight) {
    throw InvalidArgument(fmt::format("the contact sheet would be {} pixels high", height),
                          "Choose a smaller `samples`, or fewer paths at a time.");
  }
  Canvas canvas(kGap + columns * (kTileSide + kGap), static_cast<std::uint32_t>(height));
  std::uint32_t y = kGap;
  for (const Inspected& path : paths) {
    draw_block(canvas, y, columns, path);
    y += block_height(path, columns);
  }
  return encode_png(canvas.picture());
}

}  // namespace precache
