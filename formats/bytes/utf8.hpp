// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace precache {

/// Bytes of the well-formed UTF-8 sequence at the start of `text`, 0 if there is none (Unicode 15,
/// table 3-7).
[[nodiscard]] std::size_t utf8_sequence_bytes(std::string_view text);

/// Makes untrusted text safe to show: well-formed UTF-8 on one line. Bytes that are not UTF-8,
/// control characters and characters that change the writing direction become \xNN.
[[nodiscard]] std::string printable(std::string_view text);

/// Turns a file name, which may be any bytes, into a key or class name, which must be UTF-8: each
/// byte that is not part of a well-formed sequence becomes %XX.
[[nodiscard]] std::string escape_invalid_utf8(std::string_view text);

}  // namespace precache
