// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace precache {

/// Whether a file is an index of some kind, by the first of its text: what is in the way may be
/// large.
using Recognize = std::function<bool(std::string_view)>;

/// The first 64 KiB of the file at `path`; none if there is no regular file.
[[nodiscard]] std::optional<std::string> head_of(const std::filesystem::path& path);

/// Throws InvalidArgument for a file that is in the way of an index and is none.
[[noreturn]] void refuse_to_replace(const std::filesystem::path& path);

/// Writes `text` to `path`, unless it is there already. Throws InvalidArgument if the file there is
/// another than `recognize` knows, and IoError.
void write_sidecar(const std::filesystem::path& path, std::string_view text,
                   const Recognize& recognize);

/// Removes a file. Throws IoError.
void remove_file(const std::filesystem::path& path);

/// Removes the file at `path` if there is one that `recognize` knows.
void remove_sidecar(const std::filesystem::path& path, const Recognize& recognize);

}  // namespace precache
