// SPDX-License-Identifier: Apache-2.0
#include "formats/shard/manifest_text.hpp"

#include <fmt/format.h>

#include <array>

#include "formats/bytes/crc32c.hpp"
#include "formats/bytes/strict_json.hpp"
#include "formats/os/file.hpp"
#include "formats/shard/encoded_manifest.hpp"

namespace precache::manifest_text {
namespace {

constexpr std::size_t kDeepestNesting = 16;
// The library looks for a key among all members of an object whenever it adds one.
constexpr std::size_t kMostMembers = 4096;

constexpr std::string_view kZeros = "00000000";
constexpr std::string_view kBefore = "\n  \"crc32c\": \"";
constexpr std::string_view kAfter = "\"\n}\n";

/// The text with two more spaces in front of all lines but the first. Strings of JSON have no line
/// ends.
void append_indented(std::string& to, std::string_view text) {
  for (;;) {
    const std::size_t end = text.find('\n');
    to += text.substr(0, end);
    if (end == std::string_view::npos) return;
    to += "\n  ";
    text.remove_prefix(end + 1);
  }
}

/// Refuses what would exhaust the stack or the time of the library's parser. Stops where the text
/// is no longer JSON, as the parser does.
void check_structure(std::string_view text) {
  struct Level {
    bool is_object = false;
    std::size_t commas = 0;
  };
  std::array<Level, kDeepestNesting + 1> levels{};
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char next = text[i];
    if (in_string) {
      if (next == '\\') ++i;
      if (next == '"') in_string = false;
    } else if (next == '"') {
      in_string = true;
    } else if (next == '{' || next == '[') {
      if (++depth > kDeepestNesting) throw std::invalid_argument("it is nested too deeply");
      levels[depth] = {next == '{', 0};
    } else if (next == '}' || next == ']') {
      if (depth-- == 0) return;
    } else if (next == ',' && levels[depth].is_object && ++levels[depth].commas == kMostMembers) {
      throw std::invalid_argument(
          fmt::format("an object in it has more than {} members", kMostMembers));
    }
  }
}

}  // namespace

Members members_of(const Json& object) {
  Members members;
  for (const auto& [key, value] : object.items()) members.emplace_back(key, value.dump(2));
  return members;
}

std::string object_text(const Members& members) {
  if (members.empty()) return "{}";
  std::string text = "{";
  for (const auto& [key, value] : members) {
    text += text.size() == 1 ? "\n  " : ",\n  ";
    text += Json(key).dump() + ": ";
    append_indented(text, value);
  }
  return text + "\n}";
}

std::string list_text(const std::vector<std::string>& elements) {
  if (elements.empty()) return "[]";
  std::string text = "[";
  for (const std::string& element : elements) {
    text += text.size() == 1 ? "\n  " : ",\n  ";
    text += element;
  }
  return text + "\n]";
}

std::string with_own_crc(Members members) {
  members.emplace_back("crc32c", Json(kZeros).dump());
  std::string text = object_text(members) + "\n";
  const std::string crc = crc32c::text(crc32c::value(as_bytes(text)));
  return text.replace(text.size() - kAfter.size() - kZeros.size(), kZeros.size(), crc);
}

Json to_json(const ShardEntry& shard) {
  return {{"file", shard.file},
          {"samples", shard.samples},
          {"bytes", shard.bytes},
          {"crc32c", crc32c::text(shard.crc32c)}};
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
  return shard;
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

Json parse(std::string_view text) {
  check_structure(text);
  return Json::parse(text);
}

std::uint64_t version_of(const Json& json, std::uint64_t newest,
                         const std::filesystem::path& path) {
  const std::uint64_t version = strict_json::count(json.at("version"));
  if (version >= 1 && version <= newest) return version;
  throw Unsupported(fmt::format("'{}' has version {}, this build reads version{} {}", path.string(),
                                version, newest == 1 ? "" : "s 1 to", newest));
}

}  // namespace precache::manifest_text

namespace precache {

using manifest_text::kAfter;
using manifest_text::kBefore;
using manifest_text::kZeros;

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

}  // namespace precache
