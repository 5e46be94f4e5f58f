// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <thread>

#include "formats/scan.hpp"
#include "precache/formats/error.hpp"
#include "precache/formats/manifest.hpp"
#include "precache/formats/usable_threads.hpp"
#include "precache/reader/dataset.hpp"
#include "reader/bus_fault.hpp"
#include "reader/path_pattern.hpp"
#include "reader/shard_set.hpp"

namespace precache {
namespace {

using Path = std::filesystem::path;

ShardSet::Shard shard_from(const Manifest& manifest, const ShardEntry& entry, const Path& folder) {
  ShardIndex index;
  index.format = parse_format(manifest.format);
  index.bytes = entry.bytes;
  index.samples = entry.samples;
  index.spec = manifest.spec;
  index.columns = entry.columns;
  return {folder / entry.file, std::move(index)};
}

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

/// The shards of a folder that no manifest describes, by name.
std::vector<Path> shards_in(const Path& folder, std::string_view split) {
  static constexpr std::string_view kExtensions[] = {".tar", ".tfrecord", ".tfrecords", ".h5",
                                                     ".hdf5"};
  std::error_code error;
  std::vector<Path> paths;
  const auto entries = std::filesystem::directory_iterator(folder, error);
  if (error) throw IoError("cannot read", folder, error.value());
  for (const auto& entry : entries) {
    const std::string file_name = entry.path().filename().string();
    const bool known = std::find(std::begin(kExtensions), std::end(kExtensions),
                                 entry.path().extension().string()) != std::end(kExtensions);
    if (known && entry.is_regular_file(error) && file_name.starts_with(split)) {
      paths.push_back(entry.path());
    }
  }
  if (paths.empty()) {
    throw InvalidArgument(
        fmt::format("'{}' has no {} and no shards", folder.string(), kManifestName),
        "A dataset is made by: precache build SOURCE OUT");
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

ShardSet::Shard scanned(const Path& path, const OpenOptions& options) {
  const MappedShard shard(path);
  ShardIndex index = scan_shard(shard.bytes(), path, options.spec);
  shard.check();
  return {path, std::move(index)};
}

/// Scans shards, some at a time, in the caller's order.
void scan_all(std::vector<ShardSet::Shard>& shards, const std::vector<std::size_t>& missing,
              const OpenOptions& options) {
  const std::size_t wanted = options.scan_threads != 0 ? options.scan_threads : usable_threads();
  std::vector<std::exception_ptr> errors(missing.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < missing.size(); i = next++) {
      try {
        shards[missing[i]] = scanned(shards[missing[i]].path, options);
      } catch (...) {
        errors[i] = std::current_exception();
        next = missing.size();  // the first error ends the opening
      }
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 1; i < std::min(wanted, missing.size()); ++i) threads.emplace_back(work);
    work();
  }
  for (const auto& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

/// The shards that a manifest beside them lists, by file name; empty where there is no manifest.
struct Neighbours {
  std::map<std::string, ShardSet::Shard> shards;
  std::vector<std::string> classes;
};

Neighbours neighbours(const Path& folder) {
  Neighbours found;
  const Path path = folder / kManifestName;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return found;
  const Manifest manifest = Manifest::read(path);
  for (const auto& [split_name, split] : manifest.splits) {
    for (const ShardEntry& entry : split.shards) {
      found.shards.emplace(entry.file, shard_from(manifest, entry, folder));
    }
  }
  found.classes = manifest.classes;
  return found;
}

std::shared_ptr<const ShardSet> open_shards(const std::vector<Path>& paths,
                                            const OpenOptions& options) {
  if (options.spec && options.spec->size_bytes() == 0) {
    throw InvalidArgument("tensors of " + options.spec->text() + " have no elements");
  }
  std::vector<ShardSet::Shard> shards;
  std::vector<std::size_t> missing;
  std::map<Path, Neighbours> folders;
  std::vector<std::string> classes;
  for (const Path& path : paths) {
    const Path folder = path.parent_path();
    auto [at, is_new] = folders.try_emplace(folder);
    if (is_new) at->second = neighbours(folder);
    const auto known = at->second.shards.find(path.filename().string());
    if (known != at->second.shards.end()) {
      shards.push_back(known->second);
      if (classes.empty()) classes = at->second.classes;
    } else {
      missing.push_back(shards.size());
      shards.push_back({path, {}});
    }
  }
  scan_all(shards, missing, options);
  for (const auto& shard : shards) {
    if (classes.empty()) classes = shard.index.classes;
  }
  return std::make_shared<const ShardSet>(std::move(shards), std::move(classes), options);
}

}  // namespace

Dataset Dataset::open(const std::vector<Path>& shards, const OpenOptions& options) {
  if (options.handle_bus_errors) bus_fault::install_handler();
  if (shards.empty()) throw InvalidArgument("no shard was named");
  return Dataset(open_shards(shards, options));
}

Dataset Dataset::open(const Path& path, std::string_view split, const OpenOptions& options) {
  Path folder = path.filename() == kManifestName ? path.parent_path() : path;
  if (folder.empty()) folder = ".";
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored)) return open(expand_pattern(path), options);
  if (path == folder && !std::filesystem::exists(folder / kManifestName, ignored)) {
    return open(shards_in(folder, split), options);
  }
  if (options.handle_bus_errors) bus_fault::install_handler();
  Manifest manifest = Manifest::read(folder / kManifestName);
  std::vector<ShardSet::Shard> shards;
  for (const ShardEntry& entry : choose_split(manifest, split, folder).shards) {
    shards.push_back(shard_from(manifest, entry, folder));
  }
  return Dataset(
      std::make_shared<const ShardSet>(std::move(shards), std::move(manifest.classes), options));
}

}  // namespace precache
