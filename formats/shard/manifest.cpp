// SPDX-License-Identifier: Apache-2.0
#include "precache/formats/manifest.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "formats/bytes/checked_math.hpp"
#include "formats/bytes/crc32c.hpp"
#include "formats/bytes/strict_json.hpp"
#include "formats/os/file.hpp"
#include "formats/shard/self_checked_json.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kManifestVersion = 1;
constexpr int kDeepestNesting = 16;

Json to_json(const Column& column) {
  return {{"base", column.base}, {"stride", column.stride}, {"type", column.type}};
}

Json to_json(const ShardEntry& shard) {
  Json columns = {{"image", to_json(shard.columns.image)},
                  {"label", to_json(shard.columns.label)},
                  {"key", to_json(shard.columns.key)}};
  if (!shard.columns.crc32c.type.empty()) columns["crc32c"] = to_json(shard.columns.crc32c);
  return {{"file", shard.file},
          {"samples", shard.samples},
          {"bytes", shard.bytes},
          {"crc32c", crc32c::text(shard.crc32c)},
          {"columns", std::move(columns)}};
}

Json to_json(const SplitEntry& split) {
  Json shards = Json::array();
  for (const ShardEntry& shard : split.shards) shards.push_back(to_json(shard));
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
  json["shards"] = std::move(shards);
  return json;
}

const Json& array_at(const Json& json, const char* key) {
  if (!json.at(key).is_array())
    throw std::invalid_argument(fmt::format("'{}' must be an array", key));
  return json.at(key);
}

const Json& object_at(const Json& json, const char* key) {
  if (!json.at(key).is_object()) {
    throw std::invalid_argument(fmt::format("'{}' must be an object", key));
  }
  return json.at(key);
}

Column column_from(const Json& json) {
  return {strict_json::count(json.at("base")), strict_json::count(json.at("stride")),
          json.at("type").get<std::string>()};
}

ShardEntry shard_from(const Json& json) {
  ShardEntry shard;
  shard.file = json.at("file").get<std::string>();
  if (!is_file_name(shard.file)) {
    throw std::invalid_argument(
        fmt::format("'{}' is not the name of a file next to the manifest", shard.file));
  }
  shard.samples = strict_json::count(json.at("samples"));
  shard.bytes = strict_json::count(json.at("bytes"));
  const auto crc = json.at("crc32c").get<std::string>();
  const auto value = crc32c::parse(crc);
  if (!value) throw std::invalid_argument(fmt::format("'{}' is not a CRC-32C", crc));
  shard.crc32c = *value;
  const Json& columns = object_at(json, "columns");
  shard.columns = {column_from(columns.at("image")), column_from(columns.at("label")),
                   column_from(columns.at("key")),
                   columns.contains("crc32c") ? column_from(columns["crc32c"]) : Column{}};
  return shard;
}

NameLimits names_from(const Json& json) {
  constexpr std::uint64_t kLongestKey = 1 << 20;  // records are made this much longer on its word
  NameLimits names;
  names.longest_key = strict_json::count(json.at("longest_key"));
  names.smallest_label = strict_json::integer(json.at("smallest_label"));
  names.largest_label = strict_json::integer(json.at("largest_label"));
  names.all_fit_ustar = json.at("fit_ustar").get<bool>();
  if (names.longest_key == 0 || names.longest_key > kLongestKey) {
    throw std::invalid_argument(fmt::format("a key must not have {} bytes", names.longest_key));
  }
  return names;
}

SplitEntry split_from(const Json& json) {
  SplitEntry split;
  split.samples = strict_json::count(json.at("samples"));
  split.skipped = strict_json::count(json.at("skipped"));
  split.seed = strict_json::count(json.at("seed"));
  split.shuffled = json.at("shuffled").get<bool>();
  split.max_pixels = strict_json::count(json.at("max_pixels"));
  split.source_fingerprint = json.at("source_fingerprint").get<std::string>();
  if (json.contains("content_fingerprint")) {
    split.content_fingerprint = json.at("content_fingerprint").get<std::string>();
  }
  if (json.contains("names")) split.names = names_from(object_at(json, "names"));
  std::uint64_t samples = 0;
  for (const Json& shard : array_at(json, "shards")) {
    split.shards.push_back(shard_from(shard));
    samples = checked_add(samples, split.shards.back().samples);
  }
  if (split.shards.empty()) throw std::invalid_argument("a split lists no shards");
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
  (void)spec.size_bytes();  // throws if it is too large
  return spec;
}

}  // namespace

std::string Manifest::to_json() const {
  Json all_splits = Json::object();
  for (const auto& [split_name, split] : splits) all_splits[split_name] = precache::to_json(split);
  Json json = {
      {"version", kManifestVersion},
      {"format", name(format)},
      {"spec",
       {{"dtype", name(spec.dtype)}, {"shape", spec.shape()}, {"layout", name(spec.layout)}}},
      {"classes", classes},
      {"recipe", Json::parse(recipe.to_json())},
      {"splits", std::move(all_splits)}};
  return with_own_crc(std::move(json));
}

Manifest Manifest::from_json(std::string_view text, const std::filesystem::path& path) {
  try {
    // Deeper nesting than ours has a purpose only against us: the library recurses.
    const Json json = Json::parse(text, [](int depth, Json::parse_event_t, Json&) {
      if (depth > kDeepestNesting) throw std::invalid_argument("it is nested too deeply");
      return true;
    });
    if (const auto version = strict_json::count(json.at("version")); version != kManifestVersion) {
      throw Unsupported(fmt::format("'{}' has version {}, this build reads version {}",
                                    path.string(), version, kManifestVersion));
    }
    Manifest manifest;
    manifest.format = parse_format(json.at("format").get<std::string>());
    manifest.spec = spec_from(object_at(json, "spec"));
    manifest.classes = json.at("classes").get<std::vector<std::string>>();
    manifest.recipe = StoredRecipe::parse(object_at(json, "recipe").dump());
    for (const auto& [split_name, split] : object_at(json, "splits").items()) {
      manifest.splits.emplace(split_name, split_from(split));
    }
    if (manifest.splits.empty()) throw std::invalid_argument("it lists no splits");
    return manifest;
  } catch (const Json::parse_error& error) {
    throw CorruptData(path, error.byte, "it is not JSON");
  } catch (const Json::exception& error) {
    throw CorruptData(path, 0, error.what());
  } catch (const InvalidArgument& error) {
    throw CorruptData(path, 0, error.what());
  } catch (const std::invalid_argument& error) {
    throw CorruptData(path, 0, error.what());
  }
}

Manifest Manifest::read(const std::filesystem::path& path) {
  return from_json(as_text(read_file(path)), path);
}

}  // namespace precache
