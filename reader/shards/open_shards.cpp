// SPDX-License-Identifier: Apache-2.0
#include "reader/shards/open_shards.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "formats/os/bus_fault.hpp"
#include "formats/os/tasks.hpp"
#include "formats/shard/scan.hpp"
#include "precache/formats/error.hpp"
#include "precache/formats/usable_threads.hpp"
#include "precache/reader/dataset.hpp"

namespace precache {
namespace {

using Path = std::filesystem::path;

/// Refuses a spec that differs from the shard: the caller would misread the tensors.
void check_spec(const ShardSet::IndexedShard& shard, const TensorSpec& given) {
  if (shard.index.samples == 0 || !shard.index.spec || *shard.index.spec == given) return;
  throw InvalidArgument(fmt::format("the tensors of '{}' are {}, not {}", shard.path,
                                    shard.index.spec->text(), given.text()),
                        "Leave out `spec`: it is for shards that do not contain it.");
}

/// Refuses keys for shards with a manifest: keys are for scans, and these are not scanned.
void refuse_keys_of_known(const std::vector<ListedShard>& listed, const OpenOptions& options) {
  if (options.image_key.empty() && options.label_key.empty() && !options.without_labels) return;
  for (const ListedShard& shard : listed) {
    if (shard.entry == nullptr) continue;
    throw InvalidArgument(
        fmt::format("the manifest next to '{}' already defines its images and labels",
                    shard.path().string()),
        "`image_key`, `label_key` and opening without labels are for shards that have no "
        "manifest.");
  }
}

/// The recipe of all shards; empty if one has no manifest, or if they differ.
StoredRecipe common_recipe(const std::vector<ListedShard>& listed) {
  const Manifest* known = nullptr;
  for (const ListedShard& shard : listed) {
    if (shard.manifest == nullptr) return {};
    if (shard.manifest.get() == known) continue;
    if (known != nullptr && !(shard.manifest->recipe == known->recipe)) return {};
    known = shard.manifest.get();
  }
  return known == nullptr ? StoredRecipe() : known->recipe;
}

/// Refuses labels that cannot be returned, instead of leaving them out silently.
std::shared_ptr<const ShardSet> with_fit_labels(std::shared_ptr<const ShardSet> shards) {
  if (shards->mismatched_labels().empty()) return shards;
  throw InvalidArgument(shards->mismatched_labels() + "; a label is one integer or name",
                        "Choose another `label_key`, or open the shards without labels.");
}

}  // namespace

std::shared_ptr<const ShardSet> open_shards(std::vector<ListedShard> listed,
                                            const OpenOptions& options) {
  if (options.spec && options.spec->size_bytes() == 0) {
    throw InvalidArgument("`spec` describes tensors without elements: " + options.spec->text());
  }
  refuse_keys_of_known(listed, options);
  std::vector<std::string> classes;
  for (const ListedShard& shard : listed) {
    if (shard.entry != nullptr && classes.empty()) classes = shard.manifest->classes;
  }
  if (options.handle_bus_errors) bus_fault::install_handler();
  const auto is_scanned = [](const ListedShard& shard) { return shard.entry == nullptr; };
  const std::size_t threads = std::ranges::none_of(listed, is_scanned) ? 1
                              : options.scan_threads != 0              ? options.scan_threads
                                                                       : usable_threads();
  StoredRecipe recipe = common_recipe(listed);  // before the shards take the manifests
  std::vector<ShardSet::IndexedShard> shards(listed.size());
  run_tasks(listed.size(), threads,
            [&](std::size_t i) { shards[i] = open_shard(std::move(listed[i]), options); });
  listed = {};  // there may be hundreds of thousands
  for (const auto& shard : shards) {
    if (options.spec) check_spec(shard, *options.spec);
    if (classes.empty()) classes = shard.index.classes;
  }
  return std::make_shared<const ShardSet>(std::move(shards), std::move(classes), options,
                                          std::move(recipe));
}

ShardSet::IndexedShard open_shard(ListedShard listed, const OpenOptions& options) {
  // The working directory may change before it is mapped.
  std::filesystem::path path = listed.path();
  if (!path.is_absolute()) path = std::filesystem::absolute(path);
  if (listed.entry == nullptr) {
    const MappedShard mapped(listed.path());
    return {path.string(), scan_mapped(mapped, listed, options), mapped.state()};
  }
  const ShardEntry& entry = *listed.entry;
  ShardIndex index;
  index.format = listed.manifest->format;
  index.bytes = entry.bytes;
  index.samples = entry.samples;
  index.spec = listed.manifest->spec;
  index.columns = entry.columns;
  const SplitEntry& split = listed.manifest->splits.at(listed.split());
  if (!split.columns.empty()) index.named = {listed.manifest, &split.columns};
  return {path.string(), std::move(index), {}, entry.crc32c, std::move(listed.watch)};
}

ShardIndex scan_mapped(const MappedShard& mapped, const ListedShard& listed,
                       const OpenOptions& options) {
  ShardIndex index =
      scan_shard(mapped.bytes(), listed.path(), options.spec,
                 {options.image_key, options.label_key, options.without_labels}, options.helper);
  mapped.check();
  if (index.classes.empty() && listed.encoded) index.classes = listed.encoded->classes;
  return index;
}

Dataset Dataset::open(const std::vector<Path>& shards, const OpenOptions& options) {
  return Dataset(with_fit_labels(open_shards(list_shards(shards), options)));
}

Dataset Dataset::open(const Path& path, std::string_view split, const OpenOptions& options) {
  return Dataset(with_fit_labels(open_shards(list_shards(path, split), options)));
}

Dataset open_dataset(std::shared_ptr<const ShardSet> shards) { return Dataset(std::move(shards)); }

}  // namespace precache
