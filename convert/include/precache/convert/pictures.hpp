// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "precache/tools/inspect.hpp"

namespace precache {

/// A picture with three bytes a pixel.
struct Picture {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::vector<std::uint8_t> rgb;
};

/// One sample, drawn small.
struct Tile {
  std::string key;
  std::string label;     // the class's name, or its number; empty where there is none
  Picture picture;       // empty if it could not be drawn
  std::string obstacle;  // why it could not
};

struct Preview {
  std::vector<Tile> tiles;
  std::string drawing;  // how values became pixels, where that is not plain
};

inline constexpr std::uint32_t kTileSide = 192;  // pictures are scaled to fit a square of it

/// Reads the headers of encoded samples and decodes some of them, for the facts that take a
/// decoder: sizes and values. Without encoded samples nothing happens. Throws as Dataset does.
void describe_images(Inspection& facts, const std::filesystem::path& helper = {});

/// Draws some samples, well spread over all that can be read. Throws as Dataset does.
[[nodiscard]] Preview draw_preview(const Inspection& facts, std::uint64_t samples,
                                   const std::filesystem::path& helper = {});

/// One inspected path, with its picture.
struct Inspected {
  Inspection facts;
  Preview preview;
};

/// A contact sheet as the bytes of a PNG file: the tiles of each path below one another.
[[nodiscard]] std::string contact_sheet(const std::vector<Inspected>& paths);

/// The facts and tiles as an HTML page that needs nothing but itself.
[[nodiscard]] std::string inspection_page(const std::vector<Inspected>& paths);

}  // namespace precache
