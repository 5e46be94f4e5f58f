// SPDX-License-Identifier: Apache-2.0
#include "precache/convert/sidecars.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <oneapi/tbb/parallel_for.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "convert/job/work_folder.hpp"
#include "convert/sidecars/dali_index.hpp"
#include "convert/sidecars/job_sidecars.hpp"
#include "convert/sidecars/sidecar_file.hpp"
#include "convert/sidecars/sidecar_kind.hpp"
#include "convert/sidecars/tfds_metadata.hpp"
#include "convert/sidecars/wids_index.hpp"
#include "formats/hdf5/hdf5_virtual.hpp"
#include "formats/os/bus_fault.hpp"
#include "formats/os/file.hpp"
#include "formats/os/temporary_file.hpp"
#include "formats/shard/scan.hpp"
#include "precache/formats/error.hpp"
#include "reader/shards/mapped_shard.hpp"
#include "reader/shards/shard_listing.hpp"

namespace precache {
namespace {

namespace fs = std::filesystem;

// Of a lock, which is all that is wanted of the folder; no split can be called so.
constexpr const char* kWorkName = ".index";

/// The shards of one format that make up a split.
struct SplitShards {
  fs::path folder;
  std::string split;
  Format format = Format::kTar;
  std::shared_ptr<const Manifest> manifest;  // none: the shards are not ours
  std::vector<fs::path> paths;

  [[nodiscard]] const SplitEntry& entry() const { return manifest->splits.at(split); }
  [[nodiscard]] std::string text() const {
    return fmt::format("the {} shards of '{}'", name(format), (folder / split).string());
  }
};

SplitShards whole_split(const ListedShard& shard, const std::string& split) {
  SplitShards whole{shard.path.parent_path(), split, shard.manifest->format, shard.manifest, {}};
  for (const ShardEntry& entry : whole.entry().shards) {
    whole.paths.push_back(whole.folder / entry.file);
  }
  return whole;
}

Format format_of(const fs::path& shard) {
  const MappedShard mapped(shard);
  const Format format = detect_format(mapped.bytes(), shard);
  mapped.check();
  return format;
}

std::vector<SplitShards> splits_of(const std::vector<ListedShard>& listed) {
  std::map<std::tuple<fs::path, std::string, Format>, SplitShards> splits;
  for (const ListedShard& shard : listed) {
    const bool ours = shard.entry != nullptr;
    const fs::path folder = shard.path.parent_path();
    const std::string name = ours ? shard.split() : shard_prefix(shard.path);
    const Format format = ours ? shard.manifest->format : format_of(shard.path);
    SplitShards& split = splits[{folder, name, format}];
    if (ours && split.paths.empty()) split = whole_split(shard, name);
    if (ours) continue;
    if (split.paths.empty()) split = {folder, name, format, nullptr, {}};
    split.paths.push_back(shard.path);
  }
  std::vector<SplitShards> all;
  for (auto& [key, split] : splits) all.push_back(std::move(split));
  return all;
}

// --- one function for each kind ------------------------------------------------------------------

void write_dali(const SplitShards& shards, SidecarReport& report) {
  std::vector<std::uint64_t> samples(shards.paths.size());
  tbb::parallel_for(std::size_t{0}, shards.paths.size(), [&](std::size_t i) {
    const fs::path& shard = shards.paths[i];
    const bool is_known = shards.manifest != nullptr && shards.format == Format::kTfrecord;
    const dali::Index index = is_known ? dali::index_of(shard, shards.entry().shards[i])
                                       : dali::index_of(shard, shards.format);
    const Recognize is_index = [&](std::string_view text) {
      return dali::is_index(text, shards.format);
    };
    samples[i] = index.samples;
    // DALI refuses an index without samples.
    if (index.samples == 0) return remove_sidecar(dali::index_path(shard), is_index);
    write_sidecar(dali::index_path(shard), index.text, is_index);
  });
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const fs::path& shard = shards.paths[i];
    if (samples[i] != 0) {
      report.written.push_back({SidecarKind::kDali, dali::index_path(shard), samples[i]});
    } else {
      report.missing.push_back(
          {SidecarKind::kDali, shard, "it has no samples; leave it out of what DALI is given"});
    }
  }
}

void write_wids(const SplitShards& shards, SidecarReport& report) {
  const fs::path path = wids::index_path(shards.folder, shards.split);
  std::vector<wids::Shard> found(shards.paths.size());
  try {
    tbb::parallel_for(std::size_t{0}, found.size(),
                      [&](std::size_t i) { found[i] = wids::look_at(shards.paths[i]); });
  } catch (const Unsupported&) {
    remove_sidecar(path, wids::is_index);  // of shards that were there before
    throw;
  }
  std::uint64_t samples = 0;
  for (const wids::Shard& shard : found) samples += shard.samples;
  write_sidecar(path, wids::index_text(shards.split, found), wids::is_index);
  report.written.push_back({SidecarKind::kWids, path, samples});
}

fs::path vds_path(const fs::path& folder, const std::string& split) {
  return folder / (split + ".vds");  // no .h5: whoever lists *.h5 wants shards
}

/// An index by the manifest alone must not speak of shards that are gone.
void check_sizes(const SplitShards& shards) {
  for (std::size_t i = 0; i < shards.paths.size(); ++i) {
    const std::uint64_t bytes = File(shards.paths[i], O_RDONLY).size();
    const std::uint64_t expected = shards.entry().shards[i].bytes;
    if (bytes == expected) continue;
    throw CorruptData(shards.paths[i], std::min(bytes, expected),
                      fmt::format("the file has {} bytes, the manifest says {}", bytes, expected));
  }
}

void write_vds(const SplitShards& shards, SidecarReport& report) {
  const SplitEntry& split = shards.entry();
  hdf5::VirtualShards shown{shards.manifest->spec, 1, shards.manifest->classes, {}};
  for (const ShardEntry& shard : split.shards) {
    shown.shards.push_back({shard.file, shard.samples});
    shown.key_bytes = std::max<std::size_t>(shown.key_bytes, shard.columns.key.stride);
  }
  check_sizes(shards);
  const fs::path path = vds_path(shards.folder, shards.split);
  if (fs::exists(path) && !hdf5::is_virtual_file(path)) refuse_to_replace(path);
  TemporaryFile temporary(path);
  hdf5::write_virtual_file(temporary.path(), shown);
  const bool is_same = fs::exists(path) && fs::file_size(path) == fs::file_size(temporary.path()) &&
                       read_file(path) == read_file(temporary.path());
  if (!is_same) temporary.commit();
  report.written.push_back({SidecarKind::kVds, path, split.samples});
}

void write_tfds(const SplitShards& shards, SidecarReport& report) {
  check_sizes(shards);
  const fs::path path = tfds::write_metadata(shards.folder, *shards.manifest);
  const auto is_same = [&](const WrittenIndex& index) { return index.file == path; };
  if (std::ranges::any_of(report.written, is_same)) return;  // another split of the dataset
  std::uint64_t samples = 0;
  for (const auto& [split, entry] : shards.manifest->splits) samples += entry.samples;
  report.written.push_back({SidecarKind::kTfds, path, samples});
}

void write_kind(SidecarKind kind, const SplitShards& shards, SidecarReport& report) {
  switch (kind) {
    case SidecarKind::kDali:
      return write_dali(shards, report);
    case SidecarKind::kWids:
      return write_wids(shards, report);
    case SidecarKind::kVds:
      return write_vds(shards, report);
    case SidecarKind::kTfds:
      return write_tfds(shards, report);
  }
}

/// All kinds that fit; a reader that cannot read the shards is no reason to stop.
void write_fitting(const SplitShards& shards, SidecarReport& report) {
  for (const SidecarKind kind : kinds_for(shards.format, shards.manifest != nullptr)) {
    try {
      write_kind(kind, shards, report);
    } catch (const Unsupported& error) {
      report.missing.push_back({kind, shards.folder / shards.split, error.what()});
    }
  }
}

std::vector<SplitShards> find_splits(const fs::path& path, const SidecarOptions& options) {
  const auto split = options.split ? std::optional<std::string_view>(*options.split) : std::nullopt;
  return splits_of(list_shards(path, split));
}

}  // namespace

SidecarReport write_sidecars(const fs::path& path, const SidecarOptions& options) {
  std::map<fs::path, WorkFolder> locks;
  for (const SplitShards& shards : find_splits(path, options)) {
    locks.try_emplace(shards.folder, shards.folder.empty() ? "." : shards.folder, kWorkName, false);
  }
  return write_sidecars_unlocked(path, options);  // which lists again: now they stay as they are
}

SidecarReport write_sidecars_unlocked(const fs::path& path, const SidecarOptions& options) {
  bus_fault::install_handler();
  const std::vector<SplitShards> splits = find_splits(path, options);
  for (const SplitShards& shards : splits) {
    const bool ours = shards.manifest != nullptr;
    for (const SidecarKind kind : options.kinds)
      check_kind(kind, shards.format, ours, shards.text());
    if (kinds_for(shards.format, ours).empty()) {
      check_kind(SidecarKind::kVds, shards.format, ours, shards.text());
    }
  }
  SidecarReport report;
  for (const SplitShards& shards : splits) {
    if (options.kinds.empty()) write_fitting(shards, report);
    for (const SidecarKind kind : options.kinds) write_kind(kind, shards, report);
  }
  return report;
}

void remove_sidecars(const fs::path& folder, const std::string& split,
                     const std::vector<fs::path>& shards, const Manifest* rest) {
  for (const fs::path& shard : shards) {
    remove_sidecar(dali::index_path(shard), [](std::string_view text) {
      return dali::is_index(text, Format::kTar) || dali::is_index(text, Format::kTfrecord);
    });
  }
  remove_sidecar(wids::index_path(folder, split), wids::is_index);
  const fs::path vds = vds_path(folder, split);
  if (fs::exists(vds) && hdf5::is_virtual_file(vds)) remove_file(vds);
  if (!tfds::has_metadata(folder)) return;
  if (rest != nullptr) {
    tfds::write_metadata(folder, *rest);
  } else {
    tfds::remove_metadata(folder);
  }
}

}  // namespace precache
