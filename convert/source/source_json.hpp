// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "convert/source/source.hpp"

namespace precache {

/// What there is to know of a frozen source beside its listing. Copies are named as they lie in
/// `folder`.
[[nodiscard]] nlohmann::ordered_json to_json(const Source& source,
                                             const std::filesystem::path& folder);

/// Throws nlohmann::json::exception or std::invalid_argument if it is not what to_json() wrote.
[[nodiscard]] Source source_of_json(const nlohmann::ordered_json& json,
                                    const std::filesystem::path& folder);

/// Names a plan: equal exactly where the options (`identity`, a JSON object) and all that is known
/// of the source are equal, and with them every byte of the shards. Where the source lies does not
/// count: machines may mount it at different places.
[[nodiscard]] std::string plan_identity(const std::string& identity, const Source& source);

}  // namespace precache
