// SPDX-License-Identifier: Apache-2.0
#include "convert/sidecars/wids_index.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <unordered_set>

#include "formats/bytes/utf8.hpp"
#include "formats/os/file.hpp"
#include "formats/tar/tar_entries.hpp"
#include "formats/tar/ustar.hpp"
#include "precache/formats/error.hpp"
#include "reader/shards/mapped_shard.hpp"

namespace precache::wids {
namespace {

using Json = nlohmann::ordered_json;

/// The key by which wids groups the files of a sample: the name up to the first dot after the last
/// slash that any dot follows. None if there is no dot.
std::string_view key_of(std::string_view name) {
  const std::size_t last_dot = name.rfind('.');
  if (last_dot == std::string_view::npos) return {};
  const std::size_t slash = name.substr(0, last_dot).rfind('/');
  return name.substr(0, name.find('.', slash == std::string_view::npos ? 0 : slash + 1));
}

/// The name in the header itself; wids reads nothing else.
std::string_view header_name(std::span<const std::byte> file, const tar::Entry& entry) {
  const auto header = file.subspan(entry.data - ustar::kBlock, ustar::kNameBytes);
  return as_text(header).substr(0, as_text(header).find('\0'));
}

std::uint64_t count_samples(std::span<const std::byte> file, const std::filesystem::path& path) {
  std::uint64_t samples = 0;
  std::string_view key;  // in the file, which outlives it
  std::string true_key;
  std::unordered_set<std::string_view> names;
  tar::EntryCursor entries(file, path);
  while (const auto entry = entries.next()) {
    if (entry->type != tar::EntryType::kFile) continue;
    const std::string_view name = header_name(file, *entry);
    if (entry->name.find('.') == std::string_view::npos) continue;  // wids ignores it
    const bool has_key = name.find('.') != std::string_view::npos;
    const bool is_next = names.empty() || key_of(entry->name) != true_key;
    const bool is_next_to_wids = names.empty() || key_of(name) != key;
    samples += is_next ? 1 : 0;
    key = key_of(name);
    true_key = key_of(entry->name);
    if (names.insert(name).second && has_key && is_next == is_next_to_wids) continue;
    throw Unsupported(
        fmt::format("wids cannot tell the samples of '{}' apart: it reads '{}' as '{}'",
                    path.string(), entry->name, name),
        "wids reads only the 100 bytes of a name in the tar header. webdataset and DALI (`kind` "
        "dali) read the whole name.");
  }
  return samples;
}

}  // namespace

std::filesystem::path index_path(const std::filesystem::path& folder, const std::string& split) {
  return folder / (split + ".wids.json");
}

WidsShard read_shard(const std::filesystem::path& shard) {
  const std::string file = shard.filename().string();
  if (file.find_first_of(":?#;") != std::string::npos) {
    throw Unsupported(fmt::format("wids would take the file name '{}' for a URL", shard.string()),
                      "Rename it without ':', '?', '#' and ';'.");
  }
  if (escape_invalid_utf8(file) != file) {
    throw Unsupported(
        fmt::format("the name of '{}' is not UTF-8, so JSON cannot hold it", shard.string()));
  }
  const MappedShard mapped(shard);
  WidsShard found{file, count_samples(mapped.bytes(), shard), mapped.state().bytes};
  mapped.check();
  return found;
}

std::string index_text(const std::string& split, const std::vector<WidsShard>& shards) {
  Json list = Json::array();
  for (const WidsShard& shard : shards) {
    list.push_back({{"url", shard.file}, {"nsamples", shard.samples}, {"filesize", shard.bytes}});
  }
  const Json json{{"__kind__", "wids-shard-index-v1"},
                  {"wids_version", 1},
                  {"name", split},
                  {"shardlist", std::move(list)}};
  return json.dump(2) + "\n";
}

bool is_index(std::string_view text) {
  return text.starts_with('{') && text.find("\"wids_version\"") != std::string_view::npos;
}

}  // namespace precache::wids
