// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "precache/tools/inspect.hpp"

namespace precache {

/// A picture with three bytes per pixel.
struct Picture {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::vector<std::uint8_t> rgb;
};

/// One sample, drawn small.
struct Tile {
  std::string key;
  std::string label;               // the name of the class, or its number; empty if there is none
  Picture picture;                 // empty if it could not be drawn
  std::string unsupported_reason;  // why it could not be drawn
};

struct Preview {
  std::vector<Tile> tiles;
  std::string drawing;  // how values became pixels; empty if they are pixels
};

inline constexpr std::uint32_t kTileSide = 192;  // pictures are scaled to fit a square of this side

/// Adds the facts that need a decoder, sizes and values: reads the headers of some encoded samples
/// and decodes some of them. Does nothing without encoded samples. Throws as Dataset does.
void describe_images(Inspection& facts);

/// Draws some samples, spread evenly over all. Throws as Dataset does.
[[nodiscard]] Preview draw_preview(const Inspection& facts, std::uint64_t samples);

/// One inspected path, with its picture.
struct Inspected {
  Inspection facts;
  Preview preview;
};

/// A contact sheet as the bytes of a PNG file: the tiles of each path below one another.
[[nodiscard]] std::string contact_sheet(const std::vector<Inspected>& paths);

/// The facts and tiles as a self-contained HTML page.
[[nodiscard]] std::string inspection_page(const std::vector<Inspected>& paths);

}  // namespace precache
