// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "precache/formats/contents.hpp"

namespace precache::hdf5 {

/// Lists the groups, datasets and links of a file in memory. Links of other kinds than hard are
/// named, not followed; elements are not read. A single object that the library cannot open is
/// listed as such. Throws CorruptData if it cannot open the file.
[[nodiscard]] Hdf5Contents survey(std::span<const std::byte> file,
                                  const std::filesystem::path& path);

}  // namespace precache::hdf5
