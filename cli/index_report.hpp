// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "precache/convert/sidecars.hpp"

namespace precache {

/// What was written: a line for each file, but one for all that a kind has for every shard.
[[nodiscard]] std::vector<std::string> index_lines(const SidecarReport& report);

[[nodiscard]] nlohmann::ordered_json to_json(const SidecarReport& report);

/// Says on stderr what could not be written.
void say_missing(const SidecarReport& report);

}  // namespace precache
