// SPDX-License-Identifier: Apache-2.0
#include "reader/shards/shard_listing.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "formats/bytes/text.hpp"
#include "formats/shard/file_names.hpp"
#include "precache/formats/error.hpp"
#include "reader/shards/path_pattern.hpp"

namespace precache {
namespace {

using Path = std::filesystem::path;

constexpr std::string_view kDigits = "0123456789";

/// "train-00012" of "train-00012-of-01024".
std::string_view without_total(std::string_view file) {
  constexpr std::string_view kOf = "-of-";
  const std::size_t of = file.rfind(kOf);
  if (of == std::string_view::npos || of == 0 ||
      kDigits.find(file[of - 1]) == std::string_view::npos || of + kOf.size() == file.size() ||
      file.find_first_not_of(kDigits, of + kOf.size()) != std::string_view::npos) {
    return file;
  }
  return file.substr(0, of);
}

/// The split of a manifest of either kind.
template <typename Split>
const Split& choose_split(const std::map<std::string, Split>& splits, std::string_view split,
                          const Path& path) {
  if (split.empty() && splits.size() == 1) return splits.begin()->second;
  const auto found = splits.find(split.empty() ? "train" : std::string(split));
  if (found != splits.end()) return found->second;
  if (splits.empty()) throw InvalidArgument(fmt::format("'{}' has no splits", path.string()));
  if (split.empty()) {
    throw InvalidArgument(fmt::format("'{}' has several splits", path.string()),
                          fmt::format("It has: {}.", joined_keys(splits)));
  }
  std::vector<std::string> names;
  for (const auto& [name, _] : splits) names.push_back(name);
  const std::string question = did_you_mean(split, names);
  throw InvalidArgument(
      fmt::format("'{}' has no split '{}'", path.string(), split),
      fmt::format("{}{}It has: {}.", question, question.empty() ? "" : " ", joined_keys(splits)));
}

/// True if a prefix of shard names contains one of these words, such as "train" in "mnist-train".
bool has_word(std::string_view prefix, const std::set<std::string_view>& words) {
  for (std::size_t begin = 0; begin <= prefix.size();) {
    const std::size_t end = std::min(prefix.find_first_of("-_.", begin), prefix.size());
    if (words.contains(prefix.substr(begin, end - begin))) return true;
    begin = end + 1;
  }
  return false;
}

bool is_for_training(std::string_view prefix) { return has_word(prefix, {"train", "training"}); }

NameGroups groups_by_prefix(const std::vector<Path>& shards) {
  NameGroups groups;
  for (const Path& shard : shards) groups[shard_prefix(shard)].push_back(shard);
  return groups;
}

/// The shards of one split, for shards without a manifest: the group with this prefix, or else the
/// only group whose prefix contains the word. Without a name, the only group for training; all
/// shards if their names have no splits.
std::vector<Path> of_split(const std::vector<Path>& paths, std::string_view split,
                           const Path& folder) {
  const NameGroups groups = split.empty() ? groups_by_name(paths) : groups_by_prefix(paths);
  if (split.empty() && groups.size() == 1) return paths;
  std::vector<const std::vector<Path>*> found;
  for (const auto& [prefix, shards] : groups) {
    if (!split.empty() && prefix == split) return shards;
    if (split.empty() ? is_for_training(prefix) : has_word(prefix, {split})) {
      found.push_back(&shards);
    }
  }
  if (found.size() == 1) return *found.front();
  throw InvalidArgument(
      split.empty() ? fmt::format("'{}' has shards of several splits", folder.string())
                    : fmt::format("'{}' has no shards of a split '{}'", folder.string(), split),
      fmt::format("It has: {}. Choose a `split`, or take several with a pattern ('{}').",
                  joined_keys(groups), (folder / "*.tar").string()));
}

/// The shards of a folder without a manifest, by name.
std::vector<Path> shards_in(const Path& folder) {
  std::error_code error;
  std::vector<Path> paths;
  const auto entries = std::filesystem::directory_iterator(folder, error);
  if (error) throw IoError("cannot read", folder, error.value());
  for (const auto& entry : entries) {
    if (is_shard_name(entry.path().filename().string()) && entry.is_regular_file(error)) {
      paths.push_back(entry.path());
    }
  }
  if (paths.empty()) {
    throw InvalidArgument(
        fmt::format("'{}' has no {} and no shards", folder.string(), kManifestName),
        "Build a dataset there, or name a folder of shards.");
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

/// REQUIRES: called before the manifest is read, so that a replacement in between is noticed.
std::shared_ptr<const ManifestWatch> watch_manifest(const Path& path) {
  const auto state = state_at(path, Ask::kByOpening);
  if (!state) return nullptr;  // the read that follows will throw
  std::error_code ignored;
  const Path absolute = std::filesystem::absolute(path, ignored);
  return std::make_shared<const ManifestWatch>(absolute, *state);
}

/// Calls `make` for each shard of a split, or of all splits.
template <typename Split, typename Make>
std::vector<ListedShard> list_splits(const std::map<std::string, Split>& splits,
                                     std::optional<std::string_view> split, const Path& folder,
                                     const Make& make) {
  const Split* const chosen = split ? &choose_split(splits, *split, folder) : nullptr;
  std::vector<ListedShard> shards;
  for (const auto& [split_name, entries] : splits) {
    if (chosen != nullptr && chosen != &entries) continue;
    shards.reserve(shards.size() + entries.shards.size());
    for (const auto& entry : entries.shards) shards.push_back(make(entry));
  }
  return shards;
}

std::vector<ListedShard> list_manifest(const Path& folder, std::optional<std::string_view> split) {
  const auto watch = watch_manifest(folder / kManifestName);
  const auto manifest = std::make_shared<const Manifest>(Manifest::read(folder / kManifestName));
  const auto shared_folder = std::make_shared<const Path>(folder);
  return list_splits(manifest->splits, split, folder, [&](const ShardEntry& entry) {
    return ListedShard{{}, shared_folder, manifest, &entry, nullptr, nullptr, watch};
  });
}

/// The shards in a manifest of encoded images; none without one.
std::vector<ListedShard> list_encoded(const Path& folder, std::optional<std::string_view> split) {
  const auto watch = watch_manifest(folder / kEncodedManifestName);
  const auto encoded = std::make_shared<const EncodedFolder>(EncodedFolder::find(folder));
  const auto& splits = encoded->manifest.splits;
  if (splits.empty()) return {};
  const auto shared_folder = std::make_shared<const Path>(folder);
  return list_splits(splits, split, folder, [&](const ShardEntry& entry) {
    return ListedShard{{}, shared_folder, nullptr, nullptr, encoded, &entry, watch};
  });
}

/// The shards in the manifests of a folder, by file name; none without a manifest.
std::map<std::string, ListedShard> neighbours(const Path& folder) {
  std::error_code ignored;
  std::map<std::string, ListedShard> found;
  for (ListedShard& shard : list_encoded(folder, std::nullopt)) {
    found.emplace(shard.encoded_entry->file, std::move(shard));
  }
  if (!std::filesystem::exists(folder / kManifestName, ignored)) return found;
  for (ListedShard& shard : list_manifest(folder, std::nullopt)) {
    found.emplace(shard.entry->file, std::move(shard));
  }
  return found;
}

}  // namespace

const std::string& ListedShard::split() const {
  const auto found = std::ranges::find_if(manifest->splits, [&](const auto& named) {
    const std::vector<ShardEntry>& shards = named.second.shards;
    return std::greater_equal{}(entry, shards.data()) &&
           std::less{}(entry, shards.data() + shards.size());
  });
  return found->first;
}

void check_finished(const Path& folder) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder / kWorkFolderName, ignored)) {
    if (!std::filesystem::exists(entry.path() / "job.json", ignored)) continue;
    throw InvalidArgument(
        fmt::format("'{}' holds a job that is not finished", folder.string()),
        "Run the job again to finish it. A pattern of file names takes the shards that exist.");
  }
}

bool is_shard_name(std::string_view file) {
  return without_shard_ending(file) != file || without_total(file) != file ||
         file.find(".tfrecord-") != std::string_view::npos;
}

bool is_sidecar_name(std::string_view file) {
  static const std::set<std::string_view> kNames{
      kManifestName,       kEncodedManifestName, kClassesName,      "skipped.tsv",
      "dataset_info.json", "features.json",      "label.labels.txt"};
  return kNames.contains(file) || file.ends_with(".idx") || file.ends_with(".vds") ||
         file.ends_with(".wids.json");
}

std::string shard_prefix(const Path& shard) {
  const std::string file = shard.filename().string();
  std::string stem(without_total(is_shard_name(file) ? without_shard_ending(file)
                                                     : std::string_view(shard.stem().native())));
  const std::size_t end = stem.find_last_not_of(kDigits);
  if (end == std::string::npos || end + 1 == stem.size()) return stem;
  const std::size_t separator = stem.find_last_not_of("-_.", end) + 1;
  return std::string(without_shard_ending(std::string_view(stem).substr(0, separator)));
}

NameGroups groups_by_name(const std::vector<Path>& shards) {
  NameGroups groups = groups_by_prefix(shards);
  const bool has_splits = std::ranges::any_of(groups, [](const auto& group) {
    const std::string& prefix = group.first;
    return is_for_training(prefix) ||
           has_word(prefix, {"dev", "eval", "test", "testing", "val", "valid", "validation"});
  });
  if (has_splits || groups.empty()) return groups;
  return {{std::string(), shards}};
}

std::vector<ListedShard> list_shards(const std::vector<Path>& paths) {
  if (paths.empty()) throw InvalidArgument("`shards` must name at least one shard");
  std::map<Path, std::map<std::string, ListedShard>> folders;
  std::vector<ListedShard> shards;
  for (const Path& path : paths) {
    auto [folder, is_new] = folders.try_emplace(path.parent_path());
    if (is_new) folder->second = neighbours(path.parent_path());
    const auto known = folder->second.find(path.filename().string());
    shards.push_back(known == folder->second.end() ? ListedShard{path} : known->second);
  }
  return shards;
}

std::vector<ListedShard> list_shards(const Path& path, std::optional<std::string_view> split) {
  Path folder = path.filename() == kManifestName ? path.parent_path() : path;
  if (folder.empty()) folder = ".";
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored)) {
    std::vector<Path> paths = expand_pattern(path);
    const auto is_sidecar = [](const Path& file) {
      return is_sidecar_name(file.filename().native());
    };
    // A sidecar that is named by itself stays.
    if (!std::ranges::all_of(paths, is_sidecar)) std::erase_if(paths, is_sidecar);
    return list_shards(paths);
  }
  if (path == folder && !std::filesystem::exists(folder / kManifestName, ignored)) {
    if (auto encoded = list_encoded(folder, split); !encoded.empty()) return encoded;
    check_finished(folder);
    const std::vector<Path> paths = shards_in(folder);
    return list_shards(split ? of_split(paths, *split, folder) : paths);
  }
  return list_manifest(folder, split);
}

}  // namespace precache
