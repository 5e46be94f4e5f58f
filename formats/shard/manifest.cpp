// SPDX-License-Identifier: Apache-2.0
#include "precache/formats/manifest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "formats/bytes/checked_math.hpp"
#include "formats/bytes/crc32c.hpp"
#include "formats/bytes/strict_json.hpp"
#include "formats/os/file.hpp"
#include "formats/shard/encoded_manifest.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;  // of both manifests
constexpr int kDeepestNesting = 16;

constexpr std::string_view kZeros = "00000000";
// The way nlohmann::json writes a member of the outermost object with an indentation of two.
constexpr std::string_view kBefore = "\n  \"crc32c\": \"";
constexpr std::string_view kAfter = "\"\n}\n";

/// The text of a JSON object with a last member `crc32c`: the CRC-32C of the whole text with the
/// eight digits of that member replaced by zeros.
std::string with_own_crc(Json object) {
  object["crc32c"] = kZeros;
  std::string text = object.dump(2) + "\n";
  const std::string crc = crc32c::text(crc32c::value(as_bytes(text)));
  return text.replace(text.size() - kAfter.size() - kZeros.size(), kZeros.size(), crc);
}

Json to_json(const Column& column) {
  return {{"base", column.base}, {"stride", column.stride}, {"type", column.type}};
}

/// The members that a shard has in both manifests.
Json file_to_json(const ShardEntry& shard) {
  return {{"file", shard.file},
          {"samples", shard.samples},
          {"bytes", shard.bytes},
          {"crc32c", crc32c::text(shard.crc32c)}};
}

Json to_json(const ShardEntry& shard) {
  Json json = file_to_json(shard);
  Json& columns = json["columns"];
  columns = {{"image", to_json(shard.columns.image)},
             {"label", to_json(shard.columns.label)},
             {"key", to_json(shard.columns.key)}};
  if (!shard.columns.crc32c.type.empty()) columns["crc32c"] = to_json(shard.columns.crc32c);
  return json;
}

Json to_json(const SplitEntry& split) {
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
  json["shards"] = Json::array();
  for (const ShardEntry& shard : split.shards) json["shards"].push_back(to_json(shard));
  return json;
}

Json to_json(const EncodedSplit& split) {
  Json shards = Json::array();
  for (const ShardEntry& shard : split.shards) shards.push_back(file_to_json(shard));
  return {{"format", name(split.format)},
          {"samples", split.samples},
          {"skipped", split.skipped},
          {"seed", split.seed ? Json(*split.seed) : Json()},
          {"source_fingerprint", split.source_fingerprint},
          {"content_fingerprint", split.content_fingerprint},
          {"image_name", split.image_name},
          {"shards", std::move(shards)}};
}

const Json& array_at(const Json& json, const char* key) {
  if (!json.at(key).is_array()) {
    throw std::invalid_argument(fmt::format("'{}' must be an array", key));
  }
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

ShardEntry file_from(const Json& json) {
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
  return shard;
}

ShardEntry shard_from(const Json& json) {
  ShardEntry shard = file_from(json);
  const Json& columns = object_at(json, "columns");
  shard.columns = {column_from(columns.at("image")), column_from(columns.at("label")),
                   column_from(columns.at("key")),
                   columns.contains("crc32c") ? column_from(columns["crc32c"]) : Column{}};
  return shard;
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

SplitEntry split_from(const Json& json) {
  SplitEntry split;
  split.samples = strict_json::count(json.at("samples"));
  split.skipped = strict_json::count(json.at("skipped"));
  split.seed = strict_json::count(json.at("seed"));
  split.shuffled = json.at("shuffled").get<bool>();
  split.max_pixels = strict_json::count(json.at("max_pixels"));
  split.source_fingerprint = json.at("source_fingerprint").get<std::string>();
  split.content_fingerprint = json.value("content_fingerprint", "");
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

EncodedSplit encoded_split_from(const Json& json) {
  EncodedSplit split;
  split.format = parse_format(json.at("format").get<std::string>());
  split.samples = strict_json::count(json.at("samples"));
  split.skipped = strict_json::count(json.at("skipped"));
  if (!json.at("seed").is_null()) split.seed = strict_json::count(json.at("seed"));
  split.source_fingerprint = json.at("source_fingerprint").get<std::string>();
  split.content_fingerprint = json.value("content_fingerprint", "");
  split.image_name = json.value("image_name", "");
  for (const Json& shard : json.at("shards")) split.shards.push_back(file_from(shard));
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

/// Calls `read` with the JSON of a manifest. Throws Unsupported for another version, CorruptData
/// for everything that breaks the specification.
template <typename Read>
auto parse_manifest(std::string_view text, const std::filesystem::path& path, const Read& read) {
  try {
    // The library recurses, so deep nesting could exhaust the stack.
    const Json json = Json::parse(text, [](int depth, Json::parse_event_t, Json&) {
      if (depth > kDeepestNesting) throw std::invalid_argument("it is nested too deeply");
      return true;
    });
    if (const auto version = strict_json::count(json.at("version")); version != kVersion) {
      throw Unsupported(fmt::format("'{}' has version {}, this build reads version {}",
                                    path.string(), version, kVersion));
    }
    return read(json);
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

/// Whether an encoded.json that cannot be read may be a damaged manifest: a manifest that was cut
/// is no longer JSON; a third-party file of this name is JSON and does not have these members.
bool may_be_damaged(const std::filesystem::path& folder) {
  const auto bytes = read_file(folder / kEncodedManifestName);
  const std::string_view text = as_text(bytes);
  return !Json::accept(text) || text.find("source_fingerprint") != std::string_view::npos ||
         text.find("crc32c") != std::string_view::npos;
}

}  // namespace

std::string Manifest::to_json() const {
  Json all_splits = Json::object();
  for (const auto& [split_name, split] : splits) all_splits[split_name] = precache::to_json(split);
  Json json = {
      {"version", kVersion},
      {"format", name(format)},
      {"spec",
       {{"dtype", name(spec.dtype)}, {"shape", spec.shape()}, {"layout", name(spec.layout)}}},
      {"classes", classes},
      {"recipe", Json::parse(recipe.to_json())},
      {"splits", std::move(all_splits)}};
  return with_own_crc(std::move(json));
}

Manifest Manifest::from_json(std::string_view text, const std::filesystem::path& path) {
  return parse_manifest(text, path, [](const Json& json) {
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
  });
}

Manifest Manifest::read(const std::filesystem::path& path) {
  return from_json(as_text(read_file(path)), path);
}

std::string EncodedManifest::to_json() const {
  Json all_splits = Json::object();
  for (const auto& [split_name, split] : splits) all_splits[split_name] = precache::to_json(split);
  return with_own_crc({{"version", kVersion}, {"splits", std::move(all_splits)}});
}

EncodedManifest EncodedManifest::read(const std::filesystem::path& folder) {
  const auto path = folder / kEncodedManifestName;
  if (!std::filesystem::exists(path)) return {};
  return parse_manifest(as_text(read_file(path)), path, [](const Json& json) {
    EncodedManifest manifest;
    for (const auto& [split_name, split] : json.at("splits").items()) {
      manifest.splits.emplace(split_name, encoded_split_from(split));
    }
    return manifest;
  });
}

std::optional<bool> has_right_own_crc(std::string_view text) {
  const std::size_t member = text.rfind(kBefore);
  if (member == std::string_view::npos) return std::nullopt;
  const std::size_t digits = member + kBefore.size();
  if (text.size() - digits != kZeros.size() + kAfter.size() || !text.ends_with(kAfter))
    return false;
  const auto expected = crc32c::parse(text.substr(digits, kZeros.size()));
  std::uint32_t crc = crc32c::value(as_bytes(text.substr(0, digits)));
  crc = crc32c::extend(crc, as_bytes(kZeros));
  crc = crc32c::extend(crc, as_bytes(text.substr(digits + kZeros.size())));
  return expected == crc;
}

EncodedFolder EncodedFolder::find(const std::filesystem::path& folder) {
  EncodedFolder found;
  try {
    found.manifest = EncodedManifest::read(folder);
  } catch (const IoError&) {
    throw;
  } catch (const Error&) {
    if (may_be_damaged(folder)) throw;
    return {};  // a third-party file
  }
  const auto names = folder / kClassesName;
  if (found.manifest.splits.empty() || !std::filesystem::exists(names)) return found;
  const auto bytes = read_file(names);
  for (std::string_view rest = as_text(bytes); !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    found.classes.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return found;
}

const ShardEntry* EncodedFolder::shard(std::string_view file) const {
  for (const auto& [split_name, split] : manifest.splits) {
    const auto entry = std::ranges::find(split.shards, file, &ShardEntry::file);
    if (entry != split.shards.end()) return &*entry;
  }
  return nullptr;
}

}  // namespace precache
