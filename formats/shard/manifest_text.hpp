// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "precache/formats/error.hpp"
#include "precache/formats/manifest.hpp"

/// The JSON that Manifest and EncodedManifest have in common.
namespace precache::manifest_text {

using Json = nlohmann::ordered_json;

/// The texts of an object's members, by key.
using Members = std::vector<std::pair<std::string, std::string>>;

/// The members of `object` as texts with an indentation of two.
[[nodiscard]] Members members_of(const Json& object);
/// The text of an object with each member on its own line.
[[nodiscard]] std::string object_text(const Members& members);
/// The text of an array with each element, a text of one line, on its own line.
[[nodiscard]] std::string list_text(const std::vector<std::string>& elements);
/// The text of an object with a last member `crc32c`: the CRC-32C of the whole text with the eight
/// digits of that member replaced by zeros.
[[nodiscard]] std::string with_own_crc(Members members);

/// The members that a shard has in both manifests.
[[nodiscard]] Json to_json(const ShardEntry& shard);

// These throw std::invalid_argument or the library's exceptions, for read() to translate.

[[nodiscard]] ShardEntry shard_from(const Json& json);
[[nodiscard]] const Json& array_at(const Json& json, const char* key);
[[nodiscard]] const Json& object_at(const Json& json, const char* key);
/// Parses text of a hostile file in time and memory that grow linearly with it.
[[nodiscard]] Json parse(std::string_view text);
/// Its `version`. Throws Unsupported if it is not 1 to `newest`.
[[nodiscard]] std::uint64_t version_of(const Json& json, std::uint64_t newest,
                                       const std::filesystem::path& path);

/// Returns `make(json, version)`. Throws Unsupported for a newer version, CorruptData for
/// everything that breaks the specification.
template <typename Make>
auto read(std::string_view text, std::uint64_t newest, const std::filesystem::path& path,
          const Make& make) {
  try {
    const Json json = parse(text);
    return make(json, version_of(json, newest, path));
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

}  // namespace precache::manifest_text
