// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "formats/bytes/crc32c.hpp"
#include "reader/loader/augment/planar_image.hpp"
#include "tests/support/bytes.hpp"

namespace precache::test {

inline void copy(const PlanarImage& from, PlanarImage& to) {
  to.resize(from.shape());
  std::memcpy(to.plane(0), from.plane(0), from.size());
}

inline void fill_randomly(PlanarImage& image, const ImageShape& shape, Random& random) {
  image.resize(shape);
  const std::vector<std::uint8_t> octets = random_octets(random, image.size());
  std::copy(octets.begin(), octets.end(), image.plane(0));
}

inline std::vector<std::uint8_t> pixels_of(const PlanarImage& image) {
  return {image.plane(0), image.plane(0) + image.size()};
}

inline std::uint32_t crc_of(const PlanarImage& image) {
  return crc32c::value({reinterpret_cast<const std::byte*>(image.plane(0)), image.size()});
}

/// 3 x 17 x 19 pixels from 40 to 209, also made in Python:
///
///     c, y, x = np.mgrid[0:3, 0:17, 0:19]
///     (40 + (c * 97 + y * 61 + x * 37 + x * y % 7 * 11) % 170).astype(np.uint8)
inline void make_known(PlanarImage& image) {
  image.resize({3, 17, 19});
  for (std::uint32_t c = 0; c < 3; ++c) {
    for (std::uint32_t y = 0; y < 17; ++y) {
      for (std::uint32_t x = 0; x < 19; ++x) {
        const std::uint32_t value = c * 97 + y * 61 + x * 37 + x * y % 7 * 11;
        image.row(c, y)[x] = static_cast<std::uint8_t>(40 + value % 170);
      }
    }
  }
}

}  // namespace precache::test
