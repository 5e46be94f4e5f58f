// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "precache/formats/manifest.hpp"

namespace precache {

/// The fields in which two JSON objects differ, for a message: "recipe.exif: apply there,
/// ignore here; seed: 0 there, 1 here". Empty if they are equal; the order of keys is ignored.
[[nodiscard]] std::string differences(const nlohmann::ordered_json& in_out,
                                      const nlohmann::ordered_json& here);

/// The same for two datasets, without their classes and splits.
[[nodiscard]] std::string dataset_differences(const Manifest& in_out, const Manifest& here);

/// The same for one split of two manifests, which are JSON texts: of the finished split, and of the
/// one that is planned. `may_skip`: the plan does not yet know how many of its samples will be
/// skipped. `source_text` describes how the sources differ.
[[nodiscard]] std::string split_differences(const std::string& finished, const std::string& planned,
                                            const std::string& split, bool may_skip,
                                            const std::string& source_text);

}  // namespace precache
