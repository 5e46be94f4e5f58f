// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace precache {

/// File names are bytes; keys and class names are UTF-8. Bytes that are none become %XX.
[[nodiscard]] std::string escape_invalid_utf8(std::string_view text);

}  // namespace precache
