// SPDX-License-Identifier: Apache-2.0
#include "precache/formats/manifest.hpp"

#include <fmt/format.h>

#include "formats/bytes/checked_math.hpp"
#include "formats/bytes/strict_json.hpp"
#include "formats/os/file.hpp"
#include "formats/shard/columns_json.hpp"
#include "formats/shard/manifest_text.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

using manifest_text::array_at;
using manifest_text::Json;
using manifest_text::object_at;

constexpr std::uint64_t kVersion = 2;

std::string text_of(const SplitEntry& split) {
  Json json = {{"samples", split.samples},
               {"skipped", split.skipped},
               {"seed", split.seed},
               {"shuffled", split.shuffled},
               {"max_pixels", split.max_pixels},
               {"source_fingerprint", split.source_fingerprint}};
  if (!split.content_fingerprint.empty()) {
    json["content_fingerprint"] = split.content_fingerprint;
  }
  if (split.names) {
    json["names"] = {{"longest_key", split.names->longest_key},
                     {"smallest_label", split.names->smallest_label},
                     {"largest_label", split.names->largest_label},
                     {"fit_ustar", split.names->all_fit_ustar}};
  }
  SharedColumns common;
  if (split.shards.empty()) {
    common.edit().named.resize(split.columns.size());
  } else {
    common = split.shards[0].columns;
  }
  std::vector<std::string> shards;
  shards.reserve(split.shards.size());
  for (const ShardEntry& shard : split.shards) {
    Json entry = manifest_text::to_json(shard);
    if (shard.columns != common)
      entry["columns"] = columns_json::difference(split.columns, *common, *shard.columns);
    shards.push_back(entry.dump());
  }
  auto members = manifest_text::members_of(json);
  members.emplace_back("columns", columns_json::text(split.columns, *common));
  members.emplace_back("shards", manifest_text::list_text(shards));
  return manifest_text::object_text(members);
}

NameLimits names_from(const Json& json) {
  constexpr std::uint64_t kLongestKey = 1 << 20;  // each record reserves this many bytes
  NameLimits names;
  names.longest_key = strict_json::count(json.at("longest_key"));
  names.smallest_label = strict_json::integer(json.at("smallest_label"));
  names.largest_label = strict_json::integer(json.at("largest_label"));
  names.all_fit_ustar = json.at("fit_ustar").get<bool>();
  if (names.longest_key == 0 || names.longest_key > kLongestKey) {
    throw std::invalid_argument(
        fmt::format("longest_key must be from 1 to {}, got {}", kLongestKey, names.longest_key));
  }
  return names;
}

/// Version 1 has all columns in each shard.
void read_shards(const Json& json, std::uint64_t version, SplitEntry& split) {
  SharedColumns common;
  if (version != 1) {
    ShardColumns places;
    columns_json::read(object_at(json, "columns"), split.columns, places);
    common = std::move(places);
  }
  SharedColumns last = common;  // equal shards share their columns
  for (const Json& shard : array_at(json, "shards")) {
    ShardEntry& entry = split.shards.emplace_back(manifest_text::shard_from(shard));
    if (version == 1) {
      ShardColumns places;
      columns_json::read_version_1(object_at(shard, "columns"), places);
      if (*last != places) last = std::move(places);
      entry.columns = last;
    } else if (shard.contains("columns")) {
      ShardColumns places = *common;
      columns_json::apply(object_at(shard, "columns"), split.columns, places);
      if (*last != places) last = std::move(places);
      entry.columns = last;
    } else {
      entry.columns = common;
    }
  }
}

SplitEntry split_from(const Json& json, std::uint64_t version) {
  SplitEntry split;
  split.samples = strict_json::count(json.at("samples"));
  split.skipped = strict_json::count(json.at("skipped"));
  split.seed = strict_json::count(json.at("seed"));
  split.shuffled = json.at("shuffled").get<bool>();
  split.max_pixels = strict_json::count(json.at("max_pixels"));
  split.source_fingerprint = json.at("source_fingerprint").get<std::string>();
  split.content_fingerprint = json.value("content_fingerprint", "");
  if (json.contains("names")) split.names = names_from(object_at(json, "names"));
  read_shards(json, version, split);
  if (split.shards.empty()) throw std::invalid_argument("a split lists no shards");
  std::uint64_t samples = 0;
  for (const ShardEntry& shard : split.shards) samples = checked_add(samples, shard.samples);
  if (samples != split.samples) {
    throw std::invalid_argument(
        fmt::format("a split has {} samples, but its shards have {}", split.samples, samples));
  }
  return split;
}

TensorSpec spec_from(const Json& json) {
  TensorSpec spec;
  spec.dtype = parse_dtype(json.at("dtype").get<std::string>());
  spec.layout = parse_layout(json.at("layout").get<std::string>());
  std::vector<std::uint32_t> shape;
  for (const Json& extent : array_at(json, "shape")) {
    const std::uint64_t value = strict_json::count(extent, UINT32_MAX);
    if (value == 0) throw std::invalid_argument("spec.shape must not have entries of 0");
    shape.push_back(static_cast<std::uint32_t>(value));
  }
  if (shape.size() != 3) throw std::invalid_argument("spec.shape must have exactly three entries");
  const bool chw = spec.layout == Layout::kChw;
  spec.channels = shape[chw ? 0 : 2];
  spec.height = shape[chw ? 1 : 0];
  spec.width = shape[chw ? 2 : 1];
  (void)spec.size_bytes();  // throws if the size is too large
  return spec;
}

}  // namespace

std::string Manifest::to_json() const {
  manifest_text::Members all_splits;
  for (const auto& [split_name, split] : splits) {
    all_splits.emplace_back(split_name, text_of(split));
  }
  auto members = manifest_text::members_of(
      {{"version", kVersion},
       {"format", name(format)},
       {"spec",
        {{"dtype", name(spec.dtype)}, {"shape", spec.shape()}, {"layout", name(spec.layout)}}},
       {"classes", classes},
       {"recipe", Json::parse(recipe.to_json())}});
  members.emplace_back("splits", manifest_text::object_text(all_splits));
  return manifest_text::with_own_crc(std::move(members));
}

Manifest Manifest::from_json(std::string_view text, const std::filesystem::path& path) {
  return manifest_text::read(text, kVersion, path, [](const Json& json, std::uint64_t version) {
    Manifest manifest;
    manifest.format = parse_format(json.at("format").get<std::string>());
    manifest.spec = spec_from(object_at(json, "spec"));
    manifest.classes = json.at("classes").get<std::vector<std::string>>();
    manifest.recipe = StoredRecipe::parse(object_at(json, "recipe").dump());
    for (const auto& [split_name, split] : object_at(json, "splits").items()) {
      manifest.splits.emplace(split_name, split_from(split, version));
    }
    if (manifest.splits.empty()) throw std::invalid_argument("it lists no splits");
    return manifest;
  });
}

Manifest Manifest::read(const std::filesystem::path& path) {
  const auto bytes = read_file(path);
  return from_json(as_text(bytes), path);
}

}  // namespace precache
