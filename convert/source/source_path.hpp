// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

namespace precache {

inline constexpr const char* kSourceHelp =
    "`source` must be a folder of images, a shard of images, a pattern of shards, or - for "
    "standard "
    "input.";

inline constexpr const char* kUseConvertHint =
    "Use 'precache convert' to change the format of tensor shards.";

/// A resolved `source`.
struct SourcePath {
  enum class Kind { kFolder, kShards, kStream };
  Kind kind = Kind::kFolder;
  std::vector<std::filesystem::path> files;  // of shards, or the stream
};

/// Finds out whether a path is a folder, shards (which may be a pattern) or a stream: `-`, which is
/// standard input, or a pipe. Throws IoError if there is no such file, InvalidArgument for a
/// pattern that matches nothing.
[[nodiscard]] SourcePath resolve_source(const std::filesystem::path& source);

/// Throws InvalidArgument if one is inside the other: the shards must neither become part of the
/// source nor replace it.
void check_apart(const std::filesystem::path& source, const std::filesystem::path& out);

/// Throws InvalidArgument if one of the input files is also a file in `out`, through any path or
/// link: replacing shards would remove the input. `-` is standard input. Files are compared by
/// device and inode.
void check_not_in_out(const std::vector<std::filesystem::path>& files,
                      const std::filesystem::path& out);

/// Whether a folder directly contains files with names of shards.
[[nodiscard]] bool holds_shards(const std::filesystem::path& folder);

/// The shards of a folder, as the reader lists them. Throws InvalidArgument if they belong to
/// several splits.
[[nodiscard]] std::vector<std::filesystem::path> shards_in_folder(
    const std::filesystem::path& folder);

}  // namespace precache
