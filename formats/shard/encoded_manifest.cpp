// SPDX-License-Identifier: Apache-2.0
#include "formats/shard/encoded_manifest.hpp"

#include <algorithm>

#include "formats/bytes/strict_json.hpp"
#include "formats/os/file.hpp"
#include "formats/shard/manifest_text.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

using manifest_text::Json;

constexpr std::uint64_t kEncodedVersion = 1;

std::string text_of(const EncodedSplit& split) {
  const Json json = {{"format", name(split.format)},
                     {"samples", split.samples},
                     {"skipped", split.skipped},
                     {"seed", split.seed ? Json(*split.seed) : Json()},
                     {"source_fingerprint", split.source_fingerprint},
                     {"content_fingerprint", split.content_fingerprint},
                     {"image_name", split.image_name}};
  std::vector<std::string> shards;
  for (const ShardEntry& shard : split.shards) {
    shards.push_back(manifest_text::to_json(shard).dump());
  }
  auto members = manifest_text::members_of(json);
  members.emplace_back("shards", manifest_text::list_text(shards));
  return manifest_text::object_text(members);
}

EncodedSplit split_from(const Json& json) {
  EncodedSplit split;
  split.format = parse_format(json.at("format").get<std::string>());
  split.samples = strict_json::count(json.at("samples"));
  split.skipped = strict_json::count(json.at("skipped"));
  if (!json.at("seed").is_null()) split.seed = strict_json::count(json.at("seed"));
  split.source_fingerprint = json.at("source_fingerprint").get<std::string>();
  split.content_fingerprint = json.value("content_fingerprint", "");
  split.image_name = json.value("image_name", "");
  for (const Json& shard : json.at("shards")) {
    split.shards.push_back(manifest_text::shard_from(shard));
  }
  return split;
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

std::string EncodedManifest::to_json() const {
  manifest_text::Members all_splits;
  for (const auto& [split_name, split] : splits) {
    all_splits.emplace_back(split_name, text_of(split));
  }
  return manifest_text::with_own_crc({{"version", Json(kEncodedVersion).dump()},
                                      {"splits", manifest_text::object_text(all_splits)}});
}

EncodedManifest EncodedManifest::read(const std::filesystem::path& folder) {
  const auto path = folder / kEncodedManifestName;
  if (!std::filesystem::exists(path)) return {};
  const auto bytes = read_file(path);
  return manifest_text::read(as_text(bytes), kEncodedVersion, path,
                             [](const Json& json, std::uint64_t) {
                               EncodedManifest manifest;
                               for (const auto& [split_name, split] : json.at("splits").items()) {
                                 manifest.splits.emplace(split_name, split_from(split));
                               }
                               return manifest;
                             });
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
