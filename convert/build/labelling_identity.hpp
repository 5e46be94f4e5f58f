// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace precache {

/// What --labels, --classes, --image-key and --label-key add to the identity of a dataset: a JSON
/// object in which files count by their content. Throws IoError.
[[nodiscard]] nlohmann::ordered_json labelling_identity(const std::string& labels,
                                                        const std::filesystem::path& classes,
                                                        const std::string& image_key,
                                                        const std::string& label_key);

/// What a descriptor set and the name of a message add to it: nothing if there is none. Throws
/// IoError.
[[nodiscard]] nlohmann::ordered_json message_identity(const std::filesystem::path& proto,
                                                      const std::string& message);

}  // namespace precache
