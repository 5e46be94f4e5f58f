// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "formats/os/folder.hpp"

/// The names of files in a work folder. Nothing else is ever removed there.
namespace precache::work_names {

inline constexpr const char* kLock = ".lock";  // no job can be called so
inline constexpr const char* kPreparationLock = "prepare.lock";

/// Of a shard that an attempt writes.
[[nodiscard]] std::string temporary(const std::string& shard, const std::string& attempt);
[[nodiscard]] std::string result(const std::string& shard);
[[nodiscard]] std::string lock(const std::string& shard);

[[nodiscard]] bool is_lock(std::string_view name);

/// The shard that a result is of; none if the name is not that of a result.
[[nodiscard]] std::optional<std::string> shard_of_result(std::string_view name);

/// Removes an entry of a job's folder if its name and kind are what precache writes there.
void remove(const Folder& folder, const Folder::Entry& entry);

}  // namespace precache::work_names
