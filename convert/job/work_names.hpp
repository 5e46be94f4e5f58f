// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "formats/os/folder.hpp"
#include "precache/formats/format.hpp"

/// The names of shards, and of files in a work folder. Nothing else is ever removed there.
namespace precache::work_names {

inline constexpr const char* kJob = "job.json";
inline constexpr const char* kParts = "parts";
inline constexpr const char* kLock = ".lock";  // no job can be called so
// The work folder of a job that makes several splits; no split can be called so.
inline constexpr const char* kSeveralSplits = ".splits";
inline constexpr const char* kPreparationLock = "prepare.lock";
inline constexpr const char* kResultEnding = ".json";  // after the name of a shard
inline constexpr const char* kLockEnding = ".lock";    // likewise

/// "SPLIT-000000.tar".
[[nodiscard]] std::string shard(std::string_view split, std::uint64_t number, Format format);
/// The file with the plan of this identity: "plan." and its digits.
[[nodiscard]] std::string plan(std::string_view identity);
/// The file about share I of N of the source: "found-I-of-N".
[[nodiscard]] std::string found(std::uint64_t index, std::uint64_t count);
/// I and N in such a name.
[[nodiscard]] std::optional<std::pair<std::uint64_t, std::uint64_t>> found_by(
    std::string_view name);
/// The split in the name of a shard; none if shard() does not give such names.
[[nodiscard]] std::optional<std::string> split_of(std::string_view name);
/// The shard that a result belongs to; none if the name is not that of a result.
[[nodiscard]] std::optional<std::string> shard_of_result(std::string_view name);

/// Removes an entry of a job's folder if its name and kind are what precache writes there.
void remove(const Folder& folder, const Folder::Entry& entry);

}  // namespace precache::work_names
