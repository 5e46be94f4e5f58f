// SPDX-License-Identifier: Apache-2.0
#include "convert/image/decode/exif.hpp"

#include <cstdint>
#include <string_view>

#include "formats/os/file.hpp"

namespace precache {
namespace {

using namespace std::string_view_literals;

constexpr std::uint32_t kOrientationTag = 0x0112;
constexpr std::uint32_t kShort = 3;
constexpr std::uint32_t kLong = 4;

}  // namespace

std::optional<int> exif_orientation(std::span<const std::byte> exif) {
  constexpr auto kPrefix = "Exif\0\0"sv;
  for (int i = 0; i < 2 && as_text(exif).starts_with(kPrefix); ++i)
    exif = exif.subspan(kPrefix.size());
  const auto magic = as_text(exif).substr(0, 4);
  const bool little = magic == "II*\0"sv || magic == "II\0*"sv;
  if (!little && magic != "MM\0*"sv && magic != "MM*\0"sv) return std::nullopt;
  // Zero after the last byte, because a broken directory has no orientation.
  const auto number = [&](std::size_t offset, std::size_t size) {
    if (offset > exif.size() || size > exif.size() - offset) return std::uint32_t{0};
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t at = little ? offset + size - 1 - i : offset + i;
      value = value << 8 | std::to_integer<std::uint32_t>(exif[at]);
    }
    return value;
  };
  const std::size_t directory = number(4, 4);
  const std::uint32_t entries = number(directory, 2);
  std::optional<int> orientation;
  for (std::uint32_t i = 0; i < entries; ++i) {
    const std::size_t entry = directory + 2 + std::size_t{12} * i;
    if (entry + 12 > exif.size()) break;
    const std::uint32_t type = number(entry + 2, 2);
    if (number(entry, 2) != kOrientationTag || number(entry + 4, 4) != 1) continue;
    if (type == kShort) orientation = static_cast<int>(number(entry + 8, 2));
    if (type == kLong) orientation = static_cast<int>(number(entry + 8, 4));
  }
  return orientation;
}

std::optional<int> xmp_orientation(std::span<const std::byte> xmp) {
  constexpr auto kTag = "tiff:Orientation"sv;
  const std::string_view text = as_text(xmp);
  for (auto at = text.find(kTag); at != std::string_view::npos; at = text.find(kTag, at + 1)) {
    std::string_view rest = text.substr(at + kTag.size());
    if (rest.starts_with("=\"")) {
      rest.remove_prefix(2);
    } else if (rest.starts_with(">")) {
      rest.remove_prefix(1);
    } else {
      continue;
    }
    if (!rest.empty() && rest[0] >= '0' && rest[0] <= '9') return rest[0] - '0';
  }
  return std::nullopt;
}

int orientation_of(std::span<const std::byte> exif, std::span<const std::byte> xmp) {
  auto orientation = exif_orientation(exif);
  if (!orientation) orientation = xmp_orientation(xmp);
  return orientation && *orientation >= 1 && *orientation <= 8 ? *orientation : 1;
}

}  // namespace precache
