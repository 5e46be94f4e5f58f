// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>

#include "convert/image/decode/image_decoder.hpp"

namespace precache {

/// Walks all chunks of a PNG file for its size and orientation. Rejects what Pillow refuses to
/// open: chunks that run past the end of the file, and text that inflates beyond all bounds.
[[nodiscard]] std::optional<Rejection> read_png_metadata(std::span<const std::byte> file,
                                                         ImageHeader& header);

}  // namespace precache
