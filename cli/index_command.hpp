// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "precache/convert/sidecars.hpp"

namespace precache {

/// Describes what was written: the kind and a text for each file, but one text for all DALI
/// indexes.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> index_rows(
    const SidecarReport& report);

[[nodiscard]] nlohmann::ordered_json to_json(const SidecarReport& report);

/// Says on stderr which indexes could not be written.
void say_missing(const SidecarReport& report);

}  // namespace precache
