// SPDX-License-Identifier: Apache-2.0
#include "formats/shard/columns_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "formats/bytes/strict_json.hpp"
#include "formats/shard/manifest_text.hpp"

namespace precache::columns_json {
namespace {

constexpr std::array<std::pair<std::string_view, Column ShardColumns::*>, 4> kUsual{
    {{"image", &ShardColumns::image},
     {"label", &ShardColumns::label},
     {"key", &ShardColumns::key},
     {"crc32c", &ShardColumns::crc32c}}};

Json to_json(const Column& column) {
  return {{"base", column.base}, {"stride", column.stride}, {"type", column.type}};
}

Json to_json(const NamedColumn& what, const Column& place) {
  Json json = {{"base", place.base},
               {"stride", place.stride},
               {"type", name(what.type)},
               {"shape", what.shape}};
  if (!what.value_names.empty()) json["names"] = what.value_names;
  return json;
}

Column column_from(const Json& json) {
  return {strict_json::count(json.at("base")), strict_json::count(json.at("stride")),
          json.at("type").get<std::string>()};
}

NamedColumn named_from(const std::string& name, const Json& json) {
  NamedColumn column{.name = name,
                     .type = parse_value_type(json.at("type").get<std::string>()),
                     .shape = {},
                     .value_names = {}};
  for (const Json& extent : manifest_text::array_at(json, "shape")) {
    column.shape.push_back(static_cast<std::uint32_t>(strict_json::count(extent, UINT32_MAX)));
  }
  if (json.contains("names")) column.value_names = json.at("names").get<std::vector<std::string>>();
  return column;
}

/// The place of the column with this name; null if there is none.
Column* find(std::string_view name, const std::vector<NamedColumn>& named, ShardColumns& places) {
  for (const auto& [usual, member] : kUsual) {
    if (name == usual) return &(places.*member);
  }
  const auto found = std::ranges::find(named, name, &NamedColumn::name);
  return found == named.end() ? nullptr
                              : &places.named[static_cast<std::size_t>(found - named.begin())];
}

void read_usual(const Json& json, ShardColumns& places) {
  for (const auto& [usual, member] : kUsual) {
    const std::string key(usual);
    if (usual != "crc32c" || json.contains(key)) places.*member = column_from(json.at(key));
  }
}

}  // namespace

std::string text(const std::vector<NamedColumn>& named, const ShardColumns& places) {
  manifest_text::Members members;
  for (const auto& [usual, member] : kUsual) {
    const Column& column = places.*member;
    if (usual == "crc32c" && column.type.empty()) continue;
    members.emplace_back(usual, to_json(column).dump());
  }
  for (std::size_t i = 0; i < named.size(); ++i) {
    members.emplace_back(named[i].name, to_json(named[i], places.named.at(i)).dump());
  }
  return manifest_text::object_text(members);
}

void read(const Json& json, std::vector<NamedColumn>& named, ShardColumns& places) {
  read_usual(json, places);
  for (const auto& [key, value] : json.items()) {
    if (std::ranges::find(kUsual, key, [](const auto& usual) { return usual.first; }) !=
        kUsual.end()) {
      continue;
    }
    named.push_back(named_from(key, value));
    places.named.push_back(column_from(value));
  }
  validate(named);
}

Json difference(const std::vector<NamedColumn>& named, const ShardColumns& common,
                const ShardColumns& places) {
  Json all = Json::object();
  const auto add = [&](std::string_view key, const Column& usual, const Column& here) {
    Json json = Json::object();
    if (here.base != usual.base) json["base"] = here.base;
    if (here.stride != usual.stride) json["stride"] = here.stride;
    if (here.type != usual.type) json["type"] = here.type;
    if (!json.empty()) all[std::string(key)] = std::move(json);
  };
  for (const auto& [usual, member] : kUsual) add(usual, common.*member, places.*member);
  for (std::size_t i = 0; i < named.size(); ++i) {
    add(named[i].name, common.named.at(i), places.named.at(i));
  }
  return all;
}

void apply(const Json& difference, const std::vector<NamedColumn>& named, ShardColumns& places) {
  for (const auto& [key, value] : difference.items()) {
    Column* const column = find(key, named, places);
    if (column == nullptr) {
      throw std::invalid_argument(
          fmt::format("a shard has a column '{}', which its split does not list", key));
    }
    if (!value.is_object()) {
      throw std::invalid_argument(fmt::format("column '{}' of a shard must be an object", key));
    }
    if (value.contains("base")) column->base = strict_json::count(value.at("base"));
    if (value.contains("stride")) column->stride = strict_json::count(value.at("stride"));
    if (value.contains("type")) column->type = value.at("type").get<std::string>();
  }
}

void read_version_1(const Json& json, ShardColumns& places) { read_usual(json, places); }

}  // namespace precache::columns_json
