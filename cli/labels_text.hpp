// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "precache/formats/name_limits.hpp"

namespace precache {

/// "4 classes", "labels 0 to 9, no names" or "no labels".
[[nodiscard]] std::string labels_text(std::uint64_t classes,
                                      const std::optional<LabelRange>& labels);

/// The smallest and the largest, or null.
[[nodiscard]] nlohmann::ordered_json labels_json(const std::optional<LabelRange>& labels);

}  // namespace precache
