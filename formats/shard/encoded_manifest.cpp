// SPDX-License-Identifier: Apache-2.0
#include "formats/shard/encoded_manifest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "formats/bytes/crc32c.hpp"
#include "formats/bytes/strict_json.hpp"
#include "formats/os/file.hpp"
#include "formats/shard/self_checked_json.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;

EncodedShardEntry shard_from(const Json& json, const std::filesystem::path& path) {
  EncodedShardEntry shard{json.at("file").get<std::string>(),
                          strict_json::count(json.at("samples")),
                          strict_json::count(json.at("bytes"))};
  if (!is_file_name(shard.file)) {
    throw CorruptData(
        path, 0, fmt::format("'{}' is not the name of a file next to the manifest", shard.file));
  }
  const auto crc = crc32c::parse(json.at("crc32c").get<std::string>());
  if (!crc) throw CorruptData(path, 0, fmt::format("{} is not a CRC-32C", json["crc32c"].dump()));
  shard.crc32c = *crc;
  return shard;
}

EncodedSplit split_from(const Json& json, const std::filesystem::path& path) {
  EncodedSplit split;
  split.format = parse_format(json.at("format").get<std::string>());
  split.samples = strict_json::count(json.at("samples"));
  split.skipped = strict_json::count(json.at("skipped"));
  if (!json.at("seed").is_null()) split.seed = strict_json::count(json.at("seed"));
  split.source_fingerprint = json.at("source_fingerprint").get<std::string>();
  split.content_fingerprint = json.value("content_fingerprint", "");
  split.image_name = json.value("image_name", "");
  for (const Json& shard : json.at("shards")) {
    split.shards.push_back(shard_from(shard, path));
  }
  return split;
}

/// Whether a file that cannot be read may be a damaged manifest. One that was cut is not JSON any
/// more; a third-party file of this name is, and has none of our words.
bool may_be_damaged(const std::filesystem::path& folder) {
  const auto bytes = read_file(folder / kEncodedManifestName);
  const std::string_view text = as_text(bytes);
  return !Json::accept(text) || text.find("source_fingerprint") != std::string_view::npos ||
         text.find("crc32c") != std::string_view::npos;
}

}  // namespace

std::string EncodedManifest::to_json() const {
  Json all = Json::object();
  for (const auto& [split_name, split] : splits) {
    Json shards = Json::array();
    for (const EncodedShardEntry& shard : split.shards) {
      shards.push_back({{"file", shard.file},
                        {"samples", shard.samples},
                        {"bytes", shard.bytes},
                        {"crc32c", crc32c::text(shard.crc32c)}});
    }
    all[split_name] = {{"format", name(split.format)},
                       {"samples", split.samples},
                       {"skipped", split.skipped},
                       {"seed", split.seed ? Json(*split.seed) : Json()},
                       {"source_fingerprint", split.source_fingerprint},
                       {"content_fingerprint", split.content_fingerprint},
                       {"image_name", split.image_name},
                       {"shards", std::move(shards)}};
  }
  return with_own_crc({{"version", kVersion}, {"splits", std::move(all)}});
}

EncodedManifest EncodedManifest::read(const std::filesystem::path& folder) {
  EncodedManifest manifest;
  const auto path = folder / kEncodedManifestName;
  if (!std::filesystem::exists(path)) return manifest;
  try {
    const auto bytes = read_file(path);
    const Json json = Json::parse(as_text(bytes));
    if (json.at("version") != kVersion) {
      throw Unsupported(fmt::format("'{}' has version {}, this build reads version {}",
                                    path.string(), json.at("version").dump(), kVersion));
    }
    for (const auto& [split_name, split] : json.at("splits").items()) {
      manifest.splits.emplace(split_name, split_from(split, path));
    }
  } catch (const Json::exception& error) {
    throw CorruptData(path, 0, error.what());
  } catch (const std::invalid_argument& error) {
    throw CorruptData(path, 0, error.what());
  } catch (const InvalidArgument& error) {
    throw CorruptData(path, 0, error.what());
  }
  return manifest;
}

EncodedFolder EncodedFolder::find(const std::filesystem::path& folder) {
  EncodedFolder found;
  try {
    found.manifest = EncodedManifest::read(folder);
  } catch (const CorruptData&) {
    if (may_be_damaged(folder)) throw;
    return {};  // a third-party file: the shards next to it are not ours
  } catch (const Unsupported&) {
    if (may_be_damaged(folder)) throw;
    return {};
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

const EncodedShardEntry* EncodedFolder::shard(std::string_view file) const {
  for (const auto& [split_name, split] : manifest.splits) {
    const auto entry = std::ranges::find(split.shards, file, &EncodedShardEntry::file);
    if (entry != split.shards.end()) return &*entry;
  }
  return nullptr;
}

}  // namespace precache
