// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

namespace precache {

inline constexpr const char* kSourceHelp =
    "`source` is a folder of images, a shard of them, a pattern of shards, or - for standard "
    "input.";

inline constexpr const char* kUseConvertHint =
    "Use `precache convert` to change the format of tensor shards.";

/// What a source path names.
struct SourcePath {
  enum class Kind { kFolder, kShards, kStream };
  Kind kind = Kind::kFolder;
  std::vector<std::filesystem::path> files;  // of shards, or the stream
};

/// Tells a folder from shards, which may be a pattern of them, and a stream: `-` is standard
/// input, and a pipe is one too. Throws IoError for what is not there, InvalidArgument for a
/// pattern that names nothing.
[[nodiscard]] SourcePath resolve_source(const std::filesystem::path& source);

/// Throws InvalidArgument if one lies in the other: neither may what is made become a part of the
/// source, nor be written over it.
void check_apart(const std::filesystem::path& source, const std::filesystem::path& out);

/// Throws InvalidArgument if one of the files that are read, by whatever path or link, is a file of
/// `out`: replacing its shards would remove what is read. `-` is standard input. Files are compared
/// by device and inode.
void check_not_in_out(const std::vector<std::filesystem::path>& files,
                      const std::filesystem::path& out);

/// Whether files that are called like shards lie directly in a folder.
[[nodiscard]] bool holds_shards(const std::filesystem::path& folder);

/// The shards of a folder, as the reader lists them. Throws InvalidArgument if they are of several
/// splits.
[[nodiscard]] std::vector<std::filesystem::path> shards_in_folder(
    const std::filesystem::path& folder);

}  // namespace precache
