// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace precache {

/// The orientation tag of EXIF data (a TIFF directory, with or without "Exif\0\0" before it),
/// whatever its value.
[[nodiscard]] std::optional<int> exif_orientation(std::span<const std::byte> exif);

/// The same from an XMP packet, which Pillow reads if EXIF has none.
[[nodiscard]] std::optional<int> xmp_orientation(std::span<const std::byte> xmp);

/// The orientation from both; 1 if there is none or it is not valid.
[[nodiscard]] int orientation_of(std::span<const std::byte> exif, std::span<const std::byte> xmp);

}  // namespace precache
