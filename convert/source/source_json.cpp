// SPDX-License-Identifier: Apache-2.0
#include "convert/source/source_json.hpp"

#include <fmt/format.h>
#include <isa-l/crc64.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "formats/bytes/strict_json.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const FileStamp& stamp, const std::string& path) {
  return {{"path", path}, {"bytes", stamp.bytes}, {"mtime_ns", stamp.mtime_ns}};
}

/// `last` is the enumerator with the largest value.
template <typename Enum>
Enum enum_of_json(const Json& json, Enum last) {
  return static_cast<Enum>(strict_json::count(json, static_cast<std::uint64_t>(last)));
}

std::uint32_t extent_of_json(const Json& json) {
  return static_cast<std::uint32_t>(strict_json::count(json, UINT32_MAX));
}

FileStamp stamp_of_json(const Json& json) {
  return {json.at("path").get<std::string>(), strict_json::count(json.at("bytes")),
          strict_json::integer(json.at("mtime_ns"))};
}

Json to_json(const SampleForm& form) {
  const PixelArray& pixels = form.array.pixels;
  return {{"kind", static_cast<int>(form.kind)},
          {"image_key", form.image_key},
          {"type", static_cast<int>(pixels.type)},
          {"order", static_cast<int>(pixels.layout)},
          {"shape", {pixels.height, pixels.width, pixels.channels}},
          {"is_unit_range", form.array.is_unit_range}};
}

SampleForm form_of_json(const Json& json) {
  SampleForm form;
  form.kind = enum_of_json<SampleForm::Kind>(json.at("kind"), SampleForm::Kind::kArray);
  form.image_key = json.at("image_key").get<std::string>();
  PixelArray& pixels = form.array.pixels;
  pixels.type = enum_of_json<PixelType>(json.at("type"), PixelType::kFloat32);
  pixels.layout = enum_of_json<Layout>(json.at("order"), Layout::kHwc);
  pixels.height = extent_of_json(json.at("shape").at(0));
  pixels.width = extent_of_json(json.at("shape").at(1));
  pixels.channels = extent_of_json(json.at("shape").at(2));
  form.array.is_unit_range = json.at("is_unit_range").get<bool>();
  return form;
}

Json to_json(const NamedColumn& column) {
  Json json = {
      {"name", column.name}, {"type", std::string(name(column.type))}, {"shape", column.shape}};
  if (!column.value_names.empty()) json["value_names"] = column.value_names;
  return json;
}

Json to_json(const std::vector<NamedColumn>& columns) {
  Json json = Json::array();
  for (const NamedColumn& column : columns) json.push_back(to_json(column));
  return json;
}

std::vector<NamedColumn> columns_of_json(const Json& json) {
  std::vector<NamedColumn> columns;
  try {
    for (const Json& entry : json) {
      NamedColumn& column = columns.emplace_back();
      column.name = entry.at("name").get<std::string>();
      column.type = parse_value_type(entry.at("type").get<std::string>());
      for (const Json& extent : entry.at("shape")) column.shape.push_back(extent_of_json(extent));
      if (entry.contains("value_names")) {
        column.value_names = entry["value_names"].get<std::vector<std::string>>();
      }
    }
    validate(columns);
  } catch (const InvalidArgument& error) {
    throw std::invalid_argument(error.what());
  }
  return columns;
}

}  // namespace

Json to_json(const Source& source, const std::filesystem::path& folder) {
  Json shards = Json::array();
  for (const SourceShard& shard : source.shards) {
    Json json = {{"given", to_json(shard.given, shard.given.path.string())},
                 {"form", to_json(shard.form)}};
    if (shard.is_copied()) {
      json["copy"] = to_json(shard.data, shard.data.path.lexically_relative(folder).string());
    }
    shards.push_back(std::move(json));
  }
  Json json = {{"classes", source.classes},
               {"left_out", source.ignored},
               {"key_rule", static_cast<int>(source.key_rule)},
               {"shards", std::move(shards)}};
  if (!source.targets.empty()) json["targets"] = to_json(source.targets);
  return json;
}

std::string plan_identity(const std::string& identity, const Source& source, std::uint64_t stamp) {
  Json shards = Json::array();
  for (const SourceShard& shard : source.shards) {
    shards.push_back({shard.given.bytes, shard.given.mtime_ns, to_json(shard.form)});
  }
  Json json = {Json::parse(identity), stamp, source.classes, static_cast<int>(source.key_rule),
               std::move(shards)};
  if (!source.targets.empty()) json.push_back(to_json(source.targets));
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  return fmt::format("crc64:{:016x}", crc64_ecma_refl(0, bytes, text.size()));
}

Source source_of_json(const Json& json, const std::filesystem::path& folder) {
  Source source;
  source.classes = json.at("classes").get<std::vector<std::string>>();
  for (const auto& [reason, count] : json.at("left_out").items()) {
    source.ignored.emplace(reason, strict_json::count(count));
  }
  source.key_rule = enum_of_json<KeyRule>(json.at("key_rule"), KeyRule::kName);
  for (const Json& entry : json.at("shards")) {
    SourceShard shard{stamp_of_json(entry.at("given")), {}, form_of_json(entry.at("form"))};
    shard.data = shard.given;
    if (const auto copy = entry.find("copy"); copy != entry.end()) {
      shard.data = stamp_of_json(*copy);
      shard.data.path = folder / shard.data.path;
    }
    source.shards.push_back(std::move(shard));
  }
  if (const auto targets = json.find("targets"); targets != json.end()) {
    source.targets = columns_of_json(*targets);
  }
  return source;
}

}  // namespace precache
