// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "precache/convert/sidecars.hpp"
#include "precache/formats/manifest.hpp"

namespace precache {

/// Tells by the beginning of a file whether it is an index of some kind; the file may be large.
using Recognize = std::function<bool(std::string_view)>;

/// The first 64 KiB of the file at `path`; none if there is no regular file.
[[nodiscard]] std::optional<std::string> head_of(const std::filesystem::path& path);

/// Throws InvalidArgument for a file that has the name of an index and is not one.
[[noreturn]] void refuse_to_replace(const std::filesystem::path& path);

/// Writes `text` to `path`, unless the file has this text already. Throws InvalidArgument if
/// `recognize` does not know the file that it would replace, and IoError.
void write_sidecar(const std::filesystem::path& path, std::string_view text,
                   const Recognize& recognize);

/// Removes a file. Throws IoError.
void remove_file(const std::filesystem::path& path);

/// Removes the file at `path` if it exists and `recognize` knows it.
void remove_sidecar(const std::filesystem::path& path, const Recognize& recognize);

/// Removes the indexes of a split that is discarded: those of the given shards and of the split.
/// Metadata of the whole dataset is written again for `rest`, or removed if that is null. Other
/// files stay.
void remove_sidecars(const std::filesystem::path& folder, const std::string& split,
                     const std::vector<std::filesystem::path>& shards, const Manifest* rest);

/// As write_sidecars(), for a caller that already holds the lock of the folder.
SidecarReport write_sidecars_unlocked(const std::filesystem::path& path,
                                      const SidecarOptions& options);

}  // namespace precache
