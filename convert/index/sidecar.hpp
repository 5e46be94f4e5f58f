// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <string_view>

namespace precache {

/// Whether the text of a file is an index of some kind.
using Recognize = std::function<bool(std::string_view)>;

/// Throws InvalidArgument for a file that is in the way of an index and is none.
[[noreturn]] void refuse_to_replace(const std::filesystem::path& path);

/// Writes `text` to `path`, unless it is there already. Throws InvalidArgument if the file there is
/// another than `recognize` knows, and IoError.
void write_sidecar(const std::filesystem::path& path, std::string_view text,
                   const Recognize& recognize);

/// Removes the file at `path` if there is one that `recognize` knows.
void remove_sidecar(const std::filesystem::path& path, const Recognize& recognize);

/// The name of a shard without what tells its format: "train-000000" of "train-000000.tar".
[[nodiscard]] std::filesystem::path without_format(const std::filesystem::path& shard);

}  // namespace precache
