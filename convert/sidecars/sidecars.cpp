// SPDX-License-Identifier: Apache-2.0
#include "precache/convert/sidecars.hpp"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <oneapi/tbb/parallel_for.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>

#include "convert/job/work_folder.hpp"
#include "convert/sidecars/dali_index.hpp"
#include "convert/sidecars/sidecar_file.hpp"
#include "convert/sidecars/tfds_metadata.hpp"
#include "convert/sidecars/wids_index.hpp"
#include "formats/bytes/text.hpp"
#include "formats/hdf5/hdf5_writers.hpp"
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

// The work folder is used for its lock alone; no split can be called so.
constexpr const char* kWorkName = ".index";

constexpr std::array kAllKinds{SidecarKind::kDali, SidecarKind::kWids, SidecarKind::kVds,
                               SidecarKind::kTfds};

/// The kinds that shards of a format can have; some need a manifest.
std::vector<SidecarKind> kinds_for(Format format, bool has_manifest) {
  switch (format) {
    case Format::kTar:
      return {SidecarKind::kDali, SidecarKind::kWids};
    case Format::kTfrecord:
      if (has_manifest) return {SidecarKind::kDali, SidecarKind::kTfds};
      return {SidecarKind::kDali};
    case Format::kHdf5:
      break;
  }
  if (has_manifest) return {SidecarKind::kVds};
  return {};
}

/// Throws InvalidArgument if the kind is not one of kinds_for(). `what` names the shards.
void check_kind(SidecarKind kind, Format format, bool has_manifest, const std::string& what) {
  const auto has = [kind](const std::vector<SidecarKind>& kinds) {
    return std::ranges::find(kinds, kind) != kinds.end();
  };
  std::vector<std::string_view> fitting;
  for (const SidecarKind other : kinds_for(format, has_manifest)) fitting.push_back(name(other));
  if (has(kinds_for(format, has_manifest))) return;
  throw InvalidArgument(
      has(kinds_for(format, true))
          ? fmt::format("a '{}' index needs dataset.json next to {}", name(kind), what)
          : fmt::format("'{}' indexes do not exist for {}", name(kind), what),
      fitting.empty() ? "" : fmt::format("Such shards can have {}.", fmt::join(fitting, " and ")));
}

/// The shards of one format that make up a split.
struct SplitShards {
  fs::path folder;
  std::string split;
  Format format = Format::kTar;
  std::shared_ptr<const Manifest> manifest;  // none: third-party shards
  std::vector<fs::path> paths;

  [[nodiscard]] const SplitEntry& entry() const { return manifest->splits.at(split); }
  [[nodiscard]] std::string text() const {
    return fmt::format("the {} shards of '{}'", name(format), (folder / split).string());
  }
};

Format format_of(const fs::path& shard) {
  const MappedShard mapped(shard);
  const Format format = detect_format(mapped.bytes(), shard);
  mapped.check();
  return format;
}

std::vector<SplitShards> find_splits(const fs::path& path, const SidecarOptions& options) {
  const auto chosen =
      options.split ? std::optional<std::string_view>(*options.split) : std::nullopt;
  std::map<std::tuple<fs::path, std::string, Format>, SplitShards> splits;
  for (const ListedShard& shard : list_shards(path, chosen)) {
    const bool ours = shard.entry != nullptr;
    const fs::path folder = shard.path().parent_path();
    const std::string name = ours ? shard.split() : shard_prefix(shard.path());
    const Format format = ours ? shard.manifest->format : format_of(shard.path());
    SplitShards& split = splits[{folder, name, format}];
    const bool is_new = split.paths.empty();
    if (is_new) split = {folder, name, format, ours ? shard.manifest : nullptr, {}};
    if (!ours) split.paths.push_back(shard.path());
    if (!ours || !is_new) continue;
    for (const ShardEntry& entry : split.entry().shards) split.paths.push_back(folder / entry.file);
  }
  std::vector<SplitShards> all;
  for (auto& [key, split] : splits) all.push_back(std::move(split));
  return all;
}

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
          {SidecarKind::kDali, shard, "the shard is empty; leave it out of DALI's list"});
    }
  }
}

void write_wids(const SplitShards& shards, SidecarReport& report) {
  const fs::path path = wids::index_path(shards.folder, shards.split);
  std::vector<wids::WidsShard> found(shards.paths.size());
  try {
    tbb::parallel_for(std::size_t{0}, found.size(),
                      [&](std::size_t i) { found[i] = wids::read_shard(shards.paths[i]); });
  } catch (const Unsupported&) {
    remove_sidecar(path, wids::is_index);  // of earlier shards
    throw;
  }
  std::uint64_t samples = 0;
  for (const wids::WidsShard& shard : found) samples += shard.samples;
  write_sidecar(path, wids::index_text(shards.split, found), wids::is_index);
  report.written.push_back({SidecarKind::kWids, path, samples});
}

fs::path vds_path(const fs::path& folder, const std::string& split) {
  return folder / (split + ".vds");  // not .h5, so that *.h5 matches shards alone
}

/// An index that is made from the manifest alone must not list shards that are missing.
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
  hdf5::VirtualShards shown{shards.manifest->spec, 1, shards.manifest->classes, {}, split.columns};
  for (const ShardEntry& shard : split.shards) {
    shown.shards.push_back({shard.file, shard.samples});
    shown.key_bytes = std::max<std::size_t>(shown.key_bytes, shard.columns->key.stride);
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

}  // namespace

std::string_view name(SidecarKind kind) {
  static constexpr std::array<std::string_view, kAllKinds.size()> kNames{"dali", "wids", "vds",
                                                                         "tfds"};
  return kNames.at(static_cast<std::size_t>(kind));
}

std::vector<SidecarKind> parse_index_kinds(std::string_view names) {
  std::set<SidecarKind> kinds;
  for (bool more = true; more;) {
    const std::size_t comma = names.find(',');
    const std::string_view one = names.substr(0, comma);
    const auto* known =
        std::ranges::find(kAllKinds, one, [](SidecarKind kind) { return name(kind); });
    if (known == kAllKinds.end()) {
      const std::string question = did_you_mean(one, {"dali", "wids", "vds", "tfds"});
      throw InvalidArgument(fmt::format("'{}' is not a kind of index", one),
                            question + (question.empty() ? "" : " ") +
                                "Use dali, wids, vds or tfds, or several of them with commas.");
    }
    kinds.insert(*known);
    more = comma != std::string_view::npos;
    if (more) names.remove_prefix(comma + 1);
  }
  return {kinds.begin(), kinds.end()};
}

void check_sidecar_kinds(const std::vector<SidecarKind>& kinds, Format format) {
  for (const SidecarKind kind : kinds) {
    check_kind(kind, format, true, fmt::format("{} shards", name(format)));
  }
}

SidecarReport write_sidecars(const fs::path& path, const SidecarOptions& options) {
  std::map<fs::path, WorkFolder> locks;
  for (const SplitShards& shards : find_splits(path, options)) {
    locks.try_emplace(shards.folder, shards.folder.empty() ? "." : shards.folder, kWorkName, false);
  }
  return write_sidecars_unlocked(path, options);  // lists again: they do not change now
}

SidecarReport write_sidecars_unlocked(const fs::path& path, const SidecarOptions& options) {
  bus_fault::install_handler();
  const std::vector<SplitShards> splits = find_splits(path, options);
  for (const SplitShards& shards : splits) {
    const bool ours = shards.manifest != nullptr;
    std::vector<SidecarKind> kinds = options.kinds;
    if (kinds_for(shards.format, ours).empty()) kinds.push_back(SidecarKind::kVds);
    for (const SidecarKind kind : kinds) check_kind(kind, shards.format, ours, shards.text());
  }
  SidecarReport report;
  for (const SplitShards& shards : splits) {
    const bool by_name = !options.kinds.empty();
    for (const SidecarKind kind :
         by_name ? options.kinds : kinds_for(shards.format, shards.manifest != nullptr)) {
      try {
        write_kind(kind, shards, report);
      } catch (const Unsupported& error) {
        if (by_name) throw;
        report.missing.push_back({kind, shards.folder / shards.split, error.what()});
      }
    }
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
