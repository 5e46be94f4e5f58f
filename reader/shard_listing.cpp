// SPDX-License-Identifier: Apache-2.0
#include "reader/shard_listing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "precache/formats/error.hpp"
#include "reader/path_pattern.hpp"

namespace precache {
namespace {

using Path = std::filesystem::path;

const SplitEntry& choose_split(const Manifest& manifest, std::string_view split, const Path& path) {
  if (split.empty() && manifest.splits.size() == 1) return manifest.splits.begin()->second;
  const auto found = manifest.splits.find(split.empty() ? "train" : std::string(split));
  if (found != manifest.splits.end()) return found->second;
  std::string known;
  for (const auto& [known_name, entry] : manifest.splits) {
    known += (known.empty() ? "" : ", ") + known_name;
  }
  if (known.empty()) throw InvalidArgument(fmt::format("'{}' has no splits", path.string()));
  throw InvalidArgument(split.empty() ? fmt::format("'{}' has several splits", path.string())
                                      : fmt::format("'{}' has no split '{}'", path.string(), split),
                        "It has: " + known + ".");
}

/// Of shards that no manifest describes, those of one split. Without a name: `train` if there is
/// one; all, unless some are meant for tests.
std::vector<Path> of_split(const std::vector<Path>& paths, std::string_view split,
                           const Path& folder) {
  static const std::set<std::string> kTests{"dev", "test", "val", "valid", "validation"};
  std::set<std::string> prefixes;
  for (const Path& path : paths) prefixes.insert(shard_prefix(path));
  if (split.empty() && prefixes.contains("train")) split = "train";
  const bool mixes_tests =
      prefixes.size() > 1 && std::ranges::any_of(prefixes, [](const std::string& prefix) {
        return kTests.contains(prefix);
      });
  if (split.empty() && !mixes_tests) return paths;
  std::vector<Path> chosen;
  for (const Path& path : paths) {
    if (shard_prefix(path) == split) chosen.push_back(path);
  }
  if (!chosen.empty()) return chosen;
  throw InvalidArgument(
      split.empty() ? fmt::format("'{}' has shards of several splits", folder.string())
                    : fmt::format("'{}' has no shards of a split '{}'", folder.string(), split),
      fmt::format("It has: {}.", fmt::join(prefixes, ", ")));
}

/// The shards of a folder that no manifest describes, by name.
std::vector<Path> shards_in(const Path& folder) {
  static const std::set<std::string> kExtensions{".tar", ".tfrecord", ".tfrecords", ".h5", ".hdf5"};
  std::error_code error;
  std::vector<Path> paths;
  const auto entries = std::filesystem::directory_iterator(folder, error);
  if (error) throw IoError("cannot read", folder, error.value());
  for (const auto& entry : entries) {
    const bool known = kExtensions.contains(entry.path().extension().string());
    if (known && entry.is_regular_file(error)) paths.push_back(entry.path());
  }
  if (paths.empty()) {
    throw InvalidArgument(
        fmt::format("'{}' has no {} and no shards", folder.string(), kManifestName),
        "A dataset is made by: precache build SOURCE OUT");
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

void add_split(std::vector<ListedShard>& shards, const std::shared_ptr<const Manifest>& manifest,
               const SplitEntry& split, const Path& folder) {
  for (const ShardEntry& entry : split.shards) {
    shards.push_back({folder / entry.file, manifest, &entry});
  }
}

std::vector<ListedShard> list_manifest(const Path& folder, std::optional<std::string_view> split) {
  const auto manifest = std::make_shared<const Manifest>(Manifest::read(folder / kManifestName));
  std::vector<ListedShard> shards;
  if (split) {
    add_split(shards, manifest, choose_split(*manifest, *split, folder), folder);
  } else {
    for (const auto& [split_name, entry] : manifest->splits) {
      add_split(shards, manifest, entry, folder);
    }
  }
  return shards;
}

/// By file name, what a folder's manifest lists; nothing if it has none.
std::map<std::string, ListedShard> neighbours(const Path& folder) {
  std::error_code ignored;
  std::map<std::string, ListedShard> found;
  if (!std::filesystem::exists(folder / kManifestName, ignored)) return found;
  for (ListedShard& shard : list_manifest(folder, std::nullopt)) {
    found.emplace(shard.entry->file, std::move(shard));
  }
  return found;
}

}  // namespace

std::string shard_prefix(const Path& shard) {
  const std::string stem = shard.stem().string();
  const std::size_t end = stem.find_last_not_of("0123456789");
  if (end == std::string::npos || end + 1 == stem.size()) return stem;
  return stem.substr(0, stem.find_last_not_of("-_.", end) + 1);
}

std::vector<ListedShard> list_shards(const std::vector<Path>& paths) {
  if (paths.empty()) throw InvalidArgument("no shard was named");
  std::map<Path, std::map<std::string, ListedShard>> folders;
  std::vector<ListedShard> shards;
  for (const Path& path : paths) {
    auto [folder, is_new] = folders.try_emplace(path.parent_path());
    if (is_new) folder->second = neighbours(path.parent_path());
    const auto known = folder->second.find(path.filename().string());
    shards.push_back(known == folder->second.end() ? ListedShard{path, nullptr, nullptr}
                                                   : known->second);
  }
  return shards;
}

std::vector<ListedShard> list_shards(const Path& path, std::optional<std::string_view> split) {
  Path folder = path.filename() == kManifestName ? path.parent_path() : path;
  if (folder.empty()) folder = ".";
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored)) return list_shards(expand_pattern(path));
  if (path == folder && !std::filesystem::exists(folder / kManifestName, ignored)) {
    const std::vector<Path> paths = shards_in(folder);
    return list_shards(split ? of_split(paths, *split, folder) : paths);
  }
  return list_manifest(folder, split);
}

}  // namespace precache
