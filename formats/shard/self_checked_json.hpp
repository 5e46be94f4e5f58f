// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace precache {

/// The text of a JSON object with a last member `crc32c`: the CRC-32C of the whole text with the
/// eight digits of that member replaced by zeros.
[[nodiscard]] std::string with_own_crc(nlohmann::ordered_json object);

/// Whether the text is as with_own_crc() wrote it, to the byte; nothing if it has no such member.
[[nodiscard]] std::optional<bool> has_right_own_crc(std::string_view text);

}  // namespace precache
