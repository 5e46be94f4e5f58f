// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "convert/source/source.hpp"

namespace precache {

/// All about a source except for its listing. Copies are named relative to `folder`.
[[nodiscard]] nlohmann::ordered_json to_json(const Source& source,
                                             const std::filesystem::path& folder);

/// Throws nlohmann::json::exception or std::invalid_argument if to_json() did not write it.
[[nodiscard]] Source source_of_json(const nlohmann::ordered_json& json,
                                    const std::filesystem::path& folder);

/// Identifies a plan: two are equal exactly if the options (`identity`, a JSON object) and all that
/// is known of the source are equal, and so every byte of the shards. `stamp` is that of its
/// listing. The path of the source does not count, because machines may mount it at different
/// places.
[[nodiscard]] std::string plan_identity(const std::string& identity, const Source& source,
                                        std::uint64_t stamp);

}  // namespace precache
