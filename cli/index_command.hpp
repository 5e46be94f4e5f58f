// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "precache/convert/sidecars.hpp"

namespace precache {

/// Describes what was written: a line for each file, but one line for all DALI indexes.
[[nodiscard]] std::vector<std::string> index_lines(const SidecarReport& report);

[[nodiscard]] nlohmann::ordered_json to_json(const SidecarReport& report);

/// Says on stderr which indexes could not be written.
void say_missing(const SidecarReport& report);

}  // namespace precache
