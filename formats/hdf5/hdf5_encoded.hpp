// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "formats/shard/encoded_shard.hpp"

namespace precache {

/// Throws Unsupported in a build without HDF5.
void check_encoded_hdf5();

/// /images as bytes of variable length, /labels, /keys and /classes. Throws Unsupported in a build
/// without HDF5.
[[nodiscard]] std::unique_ptr<EncodedShard> make_encoded_hdf5(
    const std::filesystem::path& path, const NameLimits& limits,
    const std::vector<std::string>& classes);

}  // namespace precache
