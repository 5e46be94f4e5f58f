// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "precache/convert/pictures.hpp"

namespace precache {

/// The bytes of a PNG file.  REQUIRES: the picture is not empty. Throws std::runtime_error if
/// libpng fails.
[[nodiscard]] std::string encode_png(const Picture& picture);

}  // namespace precache
