// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "convert/source/found.hpp"
#include "convert/source/source.hpp"
#include "convert/source/source_path.hpp"
#include "convert/source/unpacker.hpp"

/// Sources that are shards of images: tar, TFRecord and HDF5 files.
namespace precache {

/// Lists the images of the shards `what.files`, which are unpacked if necessary; `root` is for
/// messages. With `shares`, takes their content from these instead of reading the shards. Throws
/// the exceptions of open_source() and open_shares().
[[nodiscard]] Source list_shards(const std::filesystem::path& root, const SourcePath& what,
                                 const Labelling& labelling, Unpacker& unpacker,
                                 const std::filesystem::path& helper, const found::Shares* shares);

/// The content of each of these shards, for found::save(). Throws Unsupported if they must be
/// unpacked, or are HDF5 files.
[[nodiscard]] found::Json list_shard_share(const std::filesystem::path& root,
                                           const SourcePath& what, const Labelling& labelling,
                                           const std::filesystem::path& helper);

}  // namespace precache
