// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "convert/image/decode/image_decoder.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/pixels.hpp"

namespace precache::test {

struct Decoded {
  std::optional<Rejection> rejection;
  ImageHeader header;
  std::vector<std::uint8_t> pixels;  // four bytes each
  bool warned = false;
};

/// Opens a file and decodes the region that `choose` selects from its header.
template <typename Choose>
Decoded decode_region(ImageDecoder& decoder, std::span<const std::byte> file,
                      const Choose& choose) {
  Decoded result;
  result.rejection = decoder.open(file, result.header);
  if (result.rejection) return result;
  const Region region = choose(result.header);
  CollectingSink sink(region.width);
  result.rejection = decoder.decode(region, sink);
  result.pixels = std::move(sink.pixels);
  result.warned = !result.rejection && decoder.warned();
  return result;
}

inline Region whole_region(const ImageHeader& header) {
  return {0, 0, header.width, header.height};
}

inline Region middle_region(const ImageHeader& header) {
  return {header.width / 4, header.height / 4, (header.width + 1) / 2, (header.height + 1) / 2};
}

inline Decoded decode_all(ImageDecoder& decoder, std::span<const std::byte> file) {
  return decode_region(decoder, file, whole_region);
}

inline Region random_region(Random& random, const ImageHeader& header) {
  const auto some = [&](std::uint64_t end) {
    return static_cast<std::uint32_t>(below(random, end));
  };
  Region region{some(header.width), some(header.height), 0, 0};
  region.width = 1 + some(header.width - region.x);
  region.height = 1 + some(header.height - region.y);
  return region;
}

}  // namespace precache::test
