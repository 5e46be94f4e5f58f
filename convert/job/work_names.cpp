// SPDX-License-Identifier: Apache-2.0
#include "convert/job/work_names.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "formats/bytes/text.hpp"
#include "formats/os/temporary_file.hpp"
#include "precache/formats/error.hpp"

namespace precache::work_names {
namespace {

constexpr std::string_view kScratchBegin = "hdf5-";  // see Hdf5Framing
constexpr std::string_view kPlanBegin = "plan.";
constexpr std::string_view kFoundBegin = "found-";
constexpr std::string_view kFoundMiddle = "-of-";
constexpr std::string_view kOldListing = "listing";  // of versions up to 0.3

/// The shard in "SHARD" + `ending`.
std::optional<std::string> shard_before(std::string_view ending, std::string_view name) {
  if (!name.ends_with(ending)) return std::nullopt;
  name.remove_suffix(ending.size());
  return split_of(name) ? std::optional<std::string>(name) : std::nullopt;
}

bool is_plan(std::string_view name) {
  if (!name.starts_with(kPlanBegin)) return false;
  name.remove_prefix(kPlanBegin.size());
  return name.size() == 16 && parse_number<std::uint64_t>(name, 16);
}

bool is_file_of_a_job(std::string_view name) {
  return name == kJob || name == kParts || name == kOldListing || name == kPreparationLock ||
         is_plan(name) || found_by(name) || has_attempt_name(name) ||
         (name.starts_with(kScratchBegin) && name.size() == kScratchBegin.size() + 6) ||
         shard_before(kResultEnding, name) || shard_before(kLockEnding, name);
}

}  // namespace

std::string shard(std::string_view split, std::uint64_t number, Format format) {
  return fmt::format("{}-{:06}{}", split, number, extension(format));
}

std::optional<std::string> split_of(std::string_view name) {
  const auto* format = std::ranges::find_if(
      kAllFormats, [&](Format known) { return name.ends_with(extension(known)); });
  if (format == kAllFormats.end()) return std::nullopt;
  name.remove_suffix(extension(*format).size());
  const std::size_t dash = name.rfind('-');
  if (dash == std::string_view::npos || dash == 0) return std::nullopt;
  const std::string_view number = name.substr(dash + 1);
  const bool is_number = number.size() >= 6 && (number.size() == 6 || number.front() != '0') &&
                         number.find_first_not_of("0123456789") == std::string_view::npos;
  return is_number ? std::optional<std::string>(name.substr(0, dash)) : std::nullopt;
}

std::string plan(std::string_view identity) {
  return fmt::format("{}{}", kPlanBegin, identity.substr(identity.find(':') + 1));
}

std::string found(std::uint64_t index, std::uint64_t count) {
  return fmt::format("{}{}{}{}", kFoundBegin, index, kFoundMiddle, count);
}

std::optional<std::pair<std::uint64_t, std::uint64_t>> found_by(std::string_view name) {
  const std::size_t middle = name.find(kFoundMiddle);
  if (!name.starts_with(kFoundBegin) || middle == std::string_view::npos) return std::nullopt;
  const auto index =
      parse_number<std::uint64_t>(name.substr(kFoundBegin.size(), middle - kFoundBegin.size()));
  const auto count = parse_number<std::uint64_t>(name.substr(middle + kFoundMiddle.size()));
  if (!index || !count || *index >= *count) return std::nullopt;
  return std::pair(*index, *count);
}

std::optional<std::string> shard_of_result(std::string_view name) {
  return shard_before(kResultEnding, name);
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
