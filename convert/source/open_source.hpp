// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "convert/source/source.hpp"
#include "convert/source/unpacker.hpp"

namespace precache {

/// Lists what SOURCE names: a folder of images, shards of them, or a stream. What cannot be read
/// at any offset is unpacked. `helper` is as BuildOptions has it.
///
/// Throws InvalidArgument where the source and the way of labelling do not fit, or there is no
/// image; IoError; CorruptData; Unsupported for shards of other kinds.
[[nodiscard]] Source open_source(const std::filesystem::path& source, const Labelling& labelling,
                                 Unpacker& unpacker, const std::filesystem::path& helper);

}  // namespace precache
