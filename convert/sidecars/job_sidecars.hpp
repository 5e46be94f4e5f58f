// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "precache/convert/sidecars.hpp"
#include "precache/formats/manifest.hpp"

namespace precache {

/// Removes the indexes of a split that is thrown away: those of the shards given and of the split.
/// What describes the whole dataset is left with the splits of `rest`, or removed if that is null.
/// Other files stay.
void remove_sidecars(const std::filesystem::path& folder, const std::string& split,
                     const std::vector<std::filesystem::path>& shards, const Manifest* rest);

/// As write_sidecars(), for a caller that holds the lock of the folder already.
SidecarReport write_sidecars_unlocked(const std::filesystem::path& path,
                                      const SidecarOptions& options);

}  // namespace precache
