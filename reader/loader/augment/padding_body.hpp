// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "formats/bytes/host_device.hpp"
#include "precache/reader/augmentation.hpp"

namespace precache::augment {

/// The pixel of an axis that is shown at `at`, which may be before or after it; -1 outside of an
/// image with constant padding.
PRECACHE_HOST_DEVICE inline std::int64_t padded_source(std::int64_t at, std::uint32_t size,
                                                       PaddingMode mode) {
  const auto end = static_cast<std::int64_t>(size);
  if (at >= 0 && at < end) return at;
  switch (mode) {
    case PaddingMode::kConstant:
      return -1;
    case PaddingMode::kEdge:
      return at < 0 ? 0 : end - 1;
    case PaddingMode::kReflect:
      return at < 0 ? -at : 2 * (end - 1) - at;
    case PaddingMode::kSymmetric:
      break;
  }
  return at < 0 ? -at - 1 : 2 * end - 1 - at;
}

}  // namespace precache::augment
