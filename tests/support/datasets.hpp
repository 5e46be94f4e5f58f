// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "formats/os/file.hpp"
#include "precache/formats/manifest.hpp"
#include "precache/reader/dataset.hpp"
#include "tests/support/shards.hpp"
#include "tests/support/temp_folder.hpp"

namespace precache::test {

struct DatasetPlan {
  Format format = Format::kTar;
  TensorSpec spec = spec_of(8, 6, 3);
  std::vector<std::uint64_t> shards{5, 3, 4};  // the samples of each
  std::string split = "train";
  std::vector<std::string> classes{"cat", "dog", "emu"};
  std::uint64_t seed = 0;
  std::string key_prefix{};
  std::vector<NamedColumn> columns{};
  /// Of each column `size`: heights and widths from 20 to 90, as of originals. Others are random.
  bool has_real_sizes = false;
};

/// A dataset folder on disk, and its expected content.
struct MadeDataset {
  std::filesystem::path folder;
  std::vector<std::filesystem::path> shards;
  std::vector<Sample> samples;
  std::vector<Bytes> values{};  // of the named columns, by sample
  Manifest manifest;

  void write_manifest() const { write_text(folder / kManifestName, manifest.to_json()); }
  [[nodiscard]] std::vector<ShardEntry>& entries() {
    return manifest.splits.begin()->second.shards;
  }
  [[nodiscard]] const std::vector<ShardEntry>& entries() const {
    return manifest.splits.begin()->second.shards;
  }
};

/// A copy of a sample's bytes.
inline std::vector<std::byte> bytes_of(const Dataset& dataset, std::uint64_t index) {
  const precache::Sample sample = dataset[index];
  return {sample.bytes().begin(), sample.bytes().end()};
}

/// Names of different lengths, labels of different widths, and some without a label.
inline SampleName name_of(Random& random, std::uint64_t i) {
  const std::int64_t label = i % 5 == 4 ? -1 : static_cast<std::int64_t>(below(random, 1000));
  return {fmt::format("c{}/{}{}", label + 1, std::string(below(random, 9), 'x'), i), label};
}

inline void set_sizes(Random& random, const std::vector<NamedColumn>& columns, Bytes& values) {
  std::size_t at = 0;
  for (const NamedColumn& column : columns) {
    for (std::size_t i = 0; column.name == kSizeColumn && i < 2; ++i) {
      const auto side = static_cast<std::int32_t>(20 + below(random, 71));
      std::memcpy(values.data() + at + i * sizeof side, &side, sizeof side);
    }
    at += column.size_bytes();
  }
}

/// Writes shards of random tensors and their manifest. A second call for the same folder adds
/// another split, if `other_split` is the result of the first call.
inline MadeDataset make_dataset(const std::filesystem::path& folder, const DatasetPlan& plan,
                                const MadeDataset* other_split = nullptr) {
  std::filesystem::create_directories(folder);
  MadeDataset made;
  made.folder = folder;
  if (other_split != nullptr) made.manifest = other_split->manifest;
  Random random(plan.seed);
  std::vector<SampleName> names;
  for (const std::uint64_t count : plan.shards) {
    for (std::uint64_t i = 0; i < count; ++i) {
      names.push_back(name_of(random, names.size()));
      names.back().key.insert(0, plan.key_prefix);
    }
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    made.values.push_back(random_bytes(random, values_bytes(plan.columns)));
    if (plan.has_real_sizes) set_sizes(random, plan.columns, made.values.back());
  }
  for (std::size_t i = 0; i < names.size(); ++i) names[i].values = made.values[i];
  made.samples = make_samples(names, plan.spec.size_bytes(), plan.seed + 1);
  const auto framing =
      make_framing(plan.format, plan.spec, limits_of(names), plan.classes, plan.columns);
  made.manifest.classes = plan.classes;
  made.manifest.spec = plan.spec;
  made.manifest.recipe = StoredRecipe::of_unknown_origin(plan.spec);
  made.manifest.format = plan.format;
  SplitEntry& split = made.manifest.splits[plan.split];
  split.columns = plan.columns;
  std::size_t first = 0;
  for (std::size_t shard = 0; shard < plan.shards.size(); ++shard) {
    const std::uint64_t count = plan.shards[shard];
    const auto samples = std::span(made.samples).subspan(first, count);
    const std::string file = fmt::format("{}-{:06}{}", plan.split, shard, extension(plan.format));
    const auto bytes = assemble(*framing, samples);
    write_bytes(folder / file, bytes);
    made.shards.push_back(folder / file);
    split.shards.push_back({file, count, bytes.size(), 0, framing->columns(count)});
    split.samples += count;
    first += count;
  }
  made.write_manifest();
  return made;
}

[[nodiscard]] inline bool same_bytes(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

/// The number of open files of this process.
[[nodiscard]] inline std::size_t open_descriptors() {
  const auto all = std::filesystem::directory_iterator("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all))) -
         1;  // without the iterator's own
}

/// The line of /proc/self/maps for this address.
[[nodiscard]] inline std::string mapping_of(const void* address) {
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::size_t at = 0;
    const auto first = std::stoull(line, &at, 16);
    const auto end = std::stoull(line.substr(at + 1), nullptr, 16);
    if (wanted >= first && wanted < end) return line;
  }
  return {};
}

/// Waits until a write gives files a new modification time.
inline void let_time_pass() { ::usleep(20'000); }

inline void cut_file(const std::filesystem::path& path, std::uint64_t bytes) {
  File(path, O_WRONLY).truncate(bytes);
}

/// Changes one byte of a file in place.
inline void flip_byte(const std::filesystem::path& path, std::uint64_t offset) {
  File file(path, O_RDWR);
  std::byte byte{};
  file.read_at(offset, {&byte, 1});
  byte ^= std::byte{0x40};
  file.write_at(offset, {&byte, 1});
}

}  // namespace precache::test
