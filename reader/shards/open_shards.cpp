// SPDX-License-Identifier: Apache-2.0
#include "reader/shards/open_shards.hpp"

#include <fmt/format.h>

#include <atomic>
#include <exception>
#include <thread>

#include "formats/os/bus_fault.hpp"
#include "formats/shard/scan.hpp"
#include "precache/formats/error.hpp"
#include "precache/formats/usable_threads.hpp"
#include "precache/reader/dataset.hpp"

namespace precache {
namespace {

using Path = std::filesystem::path;

ShardIndex index_from(const Manifest& manifest, const ShardEntry& entry) {
  ShardIndex index;
  index.format = parse_format(manifest.format);
  index.bytes = entry.bytes;
  index.samples = entry.samples;
  index.spec = manifest.spec;
  index.columns = entry.columns;
  return index;
}

ShardSet::Shard scanned(const ListedShard& listed, const OpenOptions& options) {
  const MappedShard shard(listed.path);
  ShardIndex index =
      scan_shard(shard.bytes(), listed.path, options.spec,
                 {options.image_key, options.label_key, options.without_labels}, options.helper);
  shard.check();
  if (index.classes.empty() && listed.encoded) index.classes = listed.encoded->classes;
  // It is mapped later, maybe from elsewhere.
  return {std::filesystem::absolute(listed.path), std::move(index), shard.state(), 0, nullptr};
}

/// Scans those of the listed shards that are missing, some at a time.
void scan_all(std::vector<ShardSet::Shard>& shards, const std::vector<ListedShard>& listed,
              const std::vector<std::size_t>& missing, const OpenOptions& options) {
  const std::size_t wanted = options.scan_threads != 0 ? options.scan_threads : usable_threads();
  std::vector<std::exception_ptr> errors(missing.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < missing.size(); i = next++) {
      try {
        shards[missing[i]] = scanned(listed[missing[i]], options);
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

/// A caller who is wrong about the tensors would compute with something else than he thinks.
void check_spec(const ShardSet::Shard& shard, const TensorSpec& given) {
  if (shard.index.samples == 0 || !shard.index.spec || *shard.index.spec == given) return;
  throw InvalidArgument(fmt::format("the tensors of '{}' are {}, not {}", shard.path.string(),
                                    shard.index.spec->text(), given.text()),
                        "A spec is for shards that do not say what they hold; leave it out.");
}

/// Keys say what a scan should find, and shards of a manifest are not scanned.
void refuse_keys_of_known(const std::vector<ListedShard>& listed, const OpenOptions& options) {
  if (options.image_key.empty() && options.label_key.empty() && !options.without_labels) return;
  for (const ListedShard& shard : listed) {
    if (shard.entry == nullptr) continue;
    throw InvalidArgument(
        fmt::format("the manifest next to '{}' says what its images and labels are",
                    shard.path.string()),
        "An image key, a label key or labels 'none' are for shards without a manifest.");
  }
}

/// A label that the file has and this cannot give is not silently left out.
std::shared_ptr<const ShardSet> with_fit_labels(std::shared_ptr<const ShardSet> shards) {
  if (shards->mismatched_labels().empty()) return shards;
  throw InvalidArgument(shards->mismatched_labels() + "; a label is one integer or name",
                        "Name another label (label_key), or open the shards without labels.");
}

}  // namespace

std::shared_ptr<const ShardSet> open_shards(const std::vector<ListedShard>& listed,
                                            const OpenOptions& options) {
  if (options.spec && options.spec->size_bytes() == 0) {
    throw InvalidArgument("tensors of " + options.spec->text() + " have no elements");
  }
  refuse_keys_of_known(listed, options);
  if (options.handle_bus_errors) bus_fault::install_handler();
  std::vector<ShardSet::Shard> shards;
  std::vector<std::size_t> missing;
  std::vector<std::string> classes;
  for (const ListedShard& shard : listed) {
    if (shard.entry == nullptr) {
      missing.push_back(shards.size());
      shards.emplace_back();
      continue;
    }
    shards.push_back(open_shard(shard, options));
    if (classes.empty()) classes = shard.manifest->classes;
  }
  scan_all(shards, listed, missing, options);
  for (const auto& shard : shards) {
    if (options.spec) check_spec(shard, *options.spec);
    if (classes.empty()) classes = shard.index.classes;
  }
  return std::make_shared<const ShardSet>(std::move(shards), std::move(classes), options);
}

ShardSet::Shard open_shard(const ListedShard& listed, const OpenOptions& options) {
  if (listed.entry == nullptr) return scanned(listed, options);
  return {std::filesystem::absolute(listed.path),
          index_from(*listed.manifest, *listed.entry),
          {},
          listed.entry->crc32c,
          listed.watch};
}

Dataset Dataset::open(const std::vector<Path>& shards, const OpenOptions& options) {
  return Dataset(with_fit_labels(open_shards(list_shards(shards), options)));
}

Dataset Dataset::open(const Path& path, std::string_view split, const OpenOptions& options) {
  return Dataset(with_fit_labels(open_shards(list_shards(path, split), options)));
}

}  // namespace precache
