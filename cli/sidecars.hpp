// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

namespace precache {

/// The paths of shards and datasets among several, as the shell makes them of `OUT/*`; says which
/// files next to them were left out. A single path is always taken.
[[nodiscard]] std::vector<std::filesystem::path> without_sidecars(
    const std::vector<std::filesystem::path>& paths);

}  // namespace precache
