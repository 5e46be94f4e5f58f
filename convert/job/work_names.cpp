// SPDX-License-Identifier: Apache-2.0
#include "convert/job/work_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "formats/os/temporary_file.hpp"
#include "formats/shard/framing.hpp"
#include "precache/formats/error.hpp"

namespace precache::work_names {
namespace {

constexpr std::string_view kResultEnding = ".json";
constexpr std::string_view kLockEnding = ".lock";
constexpr std::string_view kScratchBegin = "hdf5-";  // see Hdf5Framing

/// As shards are called: "SPLIT-000000.tar".
bool is_shard(std::string_view name) {
  const auto has_ending = [&](Format format) { return name.ends_with(extension(format)); };
  const auto* format = std::ranges::find_if(kAllFormats, has_ending);
  if (format == kAllFormats.end()) return false;
  name.remove_suffix(extension(*format).size());
  const std::size_t dash = name.rfind('-');
  return dash != std::string_view::npos && dash > 0 && name.size() - dash > 6 &&
         name.find_first_not_of("0123456789", dash + 1) == std::string_view::npos;
}

bool is_file_of_a_job(std::string_view name) {
  if (name == "job.json" || name == "listing" || name == kPreparationLock) return true;
  if (has_attempt_name(name)) return true;
  if (name.starts_with(kScratchBegin) && name.size() == kScratchBegin.size() + 6) return true;
  for (const std::string_view ending : {kResultEnding, kLockEnding}) {
    if (name.ends_with(ending) && is_shard(name.substr(0, name.size() - ending.size()))) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::string temporary(const std::string& shard, const std::string& attempt) {
  return fmt::format("{}.{}.part", shard, attempt);
}

std::string result(const std::string& shard) { return shard + std::string(kResultEnding); }

std::string lock(const std::string& shard) { return shard + std::string(kLockEnding); }

bool is_lock(std::string_view name) { return name.ends_with(kLockEnding); }

std::optional<std::string> shard_of_result(std::string_view name) {
  if (!name.ends_with(kResultEnding)) return std::nullopt;
  name.remove_suffix(kResultEnding.size());
  if (!is_shard(name)) return std::nullopt;
  return std::string(name);
}

void remove(const Folder& folder, const Folder::Entry& entry) {
  if (entry.is_file && is_file_of_a_job(entry.name)) folder.remove_file(entry.name);
  if (!entry.is_folder || !entry.name.starts_with("unpacked.") || !has_attempt_name(entry.name)) {
    return;
  }
  try {
    const Folder copies(folder, entry.name);
    for (const Folder::Entry& copy : copies.entries()) {
      if (copy.is_file) copies.remove_file(copy.name);
    }
    folder.remove_folder(entry.name);
  } catch (const IoError&) {
    // It stays, and so does the work folder.
  }
}

}  // namespace precache::work_names
