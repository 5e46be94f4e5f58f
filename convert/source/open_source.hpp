// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "convert/source/source.hpp"
#include "convert/source/unpacker.hpp"

namespace precache {

/// Lists the samples of a folder of images, of shards, or of a stream. Compressed shards and
/// streams are unpacked. `helper` is as in BuildOptions.
///
/// Throws InvalidArgument if there are no images or their labels cannot be found that way, IoError,
/// CorruptData, and Unsupported for other kinds of files.
[[nodiscard]] Source open_source(const std::filesystem::path& source, const Labelling& labelling,
                                 Unpacker& unpacker, const std::filesystem::path& helper);

}  // namespace precache
