// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

namespace precache {

/// The files that a pattern names. `*`, `?` and `[a-z]` match existing files, sorted by bytes.
/// `{000000..000012}`, `{a,b}` and `@000012` (short for `{000000..000012}`) list files in the given
/// order; each of them must exist when it is opened. A path that exists is not a pattern.
///
/// Throws InvalidArgument if nothing matches, or a list is malformed, nested or longer than a
/// million; IoError if a folder cannot be searched.
[[nodiscard]] std::vector<std::filesystem::path> expand_pattern(
    const std::filesystem::path& pattern);

}  // namespace precache
