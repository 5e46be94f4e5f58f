// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "precache/formats/manifest.hpp"

namespace precache {

/// Removes the indexes of a split that is thrown away: those of the shards given and of the split.
/// What describes the whole dataset is left with the splits of `rest`, or removed if that is null.
/// Files that are no indexes stay.
void remove_sidecars(const std::filesystem::path& folder, const std::string& split,
                     const std::vector<std::filesystem::path>& shards, const Manifest* rest);

}  // namespace precache
