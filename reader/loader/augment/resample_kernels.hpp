// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "reader/loader/augment/resample_tables.hpp"

/// The inner loops of resizing, for the best instruction set that the machine has. The sums are
/// Pillow's to the last bit.
namespace precache {

/// Rows of pixels at equal distances.
struct PlaneRows {
  const std::uint8_t* first = nullptr;
  std::size_t stride = 0;
  std::size_t rows = 0;
  std::size_t width = 0;
};

/// Vertical passes read and write whole vectors: up to this many bytes after each row.
inline constexpr std::size_t kRowSlack = 64;

/// The number of 32-bit lanes for which HorizontalTable::make has to make tables.
[[nodiscard]] std::size_t resample_lanes();

/// Writes a row for each row of the source, `out_stride` apart, in that order; each may be overrun
/// by kRowSlack. Reads `table.reach` bytes of each source row.
void resample_rows(const PlaneRows& in, const HorizontalTable& table, bool clamp, std::uint8_t* out,
                   std::size_t out_stride);

/// Writes a row for each row of the table. `clamp`: sums may be outside of 0 to 255, as there are
/// negative weights.
void resample_columns(const PlaneRows& in, const VerticalTable& table, bool clamp,
                      std::uint8_t* out, std::size_t out_stride);

}  // namespace precache
