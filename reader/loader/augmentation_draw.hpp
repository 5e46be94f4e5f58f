// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace precache {

/// What is drawn for one sample. Copied to GPUs as it lies in memory.
struct AugmentationDraw {
  std::uint32_t y = 0;  // of the crop
  std::uint32_t x = 0;
  bool flip = false;
};

}  // namespace precache
