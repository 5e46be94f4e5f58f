// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace precache {

/// Bytes of the well-formed UTF-8 sequence at the start of `text`, 0 if there is none (Unicode 15,
/// table 3-7).
[[nodiscard]] std::size_t utf8_sequence_bytes(std::string_view text);

/// Text of a stranger as it may be shown: well-formed UTF-8 on one line. Bytes that are none,
/// control characters, and those that turn the direction of writing become \xNN.
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace precache
