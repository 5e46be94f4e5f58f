// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "convert/image/decode/image_decoder.hpp"

namespace precache {

/// Whether an EXIF orientation exchanges rows and columns.
[[nodiscard]] constexpr bool is_transposed(int orientation) { return orientation >= 5; }

/// The part of a stored image that `oriented` shows, in an image of this stored size.
[[nodiscard]] Region stored_region(const Region& oriented, int orientation,
                                   std::uint32_t stored_width, std::uint32_t stored_height);

/// Collects the rows of a stored region and passes them on in the oriented order.
class OrientingSink : public RowSink {
 public:
  void start(std::uint32_t width, std::uint32_t height);
  void take_row(const std::uint8_t* pixels) override;
  void hand_over(int orientation, RowSink& sink);

 private:
  std::uint32_t width_ = 0;
  std::uint32_t height_ = 0;
  std::vector<std::uint8_t> pixels_;  // row by row
  std::vector<std::uint8_t> row_;
};

}  // namespace precache
