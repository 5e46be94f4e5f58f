// SPDX-License-Identifier: Apache-2.0
#include "convert/encoded_manifest.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "formats/base/file.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;

EncodedSplit split_from(const Json& json) {
  EncodedSplit split;
  split.format = json.at("format").get<std::string>();
  split.samples = json.at("samples").get<std::uint64_t>();
  split.skipped = json.at("skipped").get<std::uint64_t>();
  if (!json.at("seed").is_null()) split.seed = json.at("seed").get<std::uint64_t>();
  split.source_fingerprint = json.at("source_fingerprint").get<std::string>();
  for (const Json& shard : json.at("shards")) {
    split.shards.push_back({shard.at("file").get<std::string>(),
                            shard.at("samples").get<std::uint64_t>(),
                            shard.at("bytes").get<std::uint64_t>()});
  }
  return split;
}

}  // namespace

std::string EncodedManifest::to_json() const {
  Json all = Json::object();
  for (const auto& [split_name, split] : splits) {
    Json shards = Json::array();
    for (const EncodedShardEntry& shard : split.shards) {
      shards.push_back({{"file", shard.file}, {"samples", shard.samples}, {"bytes", shard.bytes}});
    }
    all[split_name] = {{"format", split.format},
                       {"samples", split.samples},
                       {"skipped", split.skipped},
                       {"seed", split.seed ? Json(*split.seed) : Json()},
                       {"source_fingerprint", split.source_fingerprint},
                       {"shards", std::move(shards)}};
  }
  const Json json = {{"version", kVersion}, {"splits", std::move(all)}};
  return json.dump(2) + "\n";
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
      manifest.splits.emplace(split_name, split_from(split));
    }
  } catch (const Json::exception& error) {
    throw CorruptData(path, 0, error.what());
  }
  return manifest;
}

}  // namespace precache
