// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>

#include "convert/source/source.hpp"

namespace precache {

/// What there is to know of a frozen source beside its listing. Copies are named as they lie in
/// `folder`.
[[nodiscard]] nlohmann::ordered_json to_json(const Source& source,
                                             const std::filesystem::path& folder);

/// Throws nlohmann::json::exception if it is not what to_json() wrote.
[[nodiscard]] Source source_of_json(const nlohmann::ordered_json& json,
                                    const std::filesystem::path& folder);

}  // namespace precache
