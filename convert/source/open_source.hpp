// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "convert/source/found.hpp"
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

/// The same for a source whose shares several runs have listed.
[[nodiscard]] Source open_shares(const std::filesystem::path& source, const Labelling& labelling,
                                 Unpacker& unpacker, const std::filesystem::path& helper,
                                 const found::Shares& shares);

/// Lists a share of the source, for found::save(). Throws as open_source() does, and Unsupported
/// for a source that only one run can list: a pipe, compressed shards and HDF5 files.
[[nodiscard]] nlohmann::ordered_json list_share(const std::filesystem::path& source,
                                                const Labelling& labelling,
                                                const std::filesystem::path& helper, Share share);

}  // namespace precache
