// SPDX-License-Identifier: Apache-2.0
#include "convert/source/source_json.hpp"

#include <nlohmann/json.hpp>

namespace precache {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const FileStamp& stamp, const std::string& path) {
  return {{"path", path}, {"bytes", stamp.bytes}, {"mtime_ns", stamp.mtime_ns}};
}

FileStamp stamp_of_json(const Json& json) {
  return {json.at("path").get<std::string>(), json.at("bytes").get<std::uint64_t>(),
          json.at("mtime_ns").get<std::int64_t>()};
}

Json to_json(const SampleForm& form) {
  const PixelArray& pixels = form.array.pixels;
  return {{"kind", static_cast<int>(form.kind)},
          {"image_key", form.image_key},
          {"type", static_cast<int>(pixels.type)},
          {"order", static_cast<int>(pixels.order)},
          {"shape", {pixels.height, pixels.width, pixels.channels}},
          {"is_unit_range", form.array.is_unit_range}};
}

SampleForm form_of_json(const Json& json) {
  SampleForm form;
  form.kind = static_cast<SampleForm::Kind>(json.at("kind").get<int>());
  form.image_key = json.at("image_key").get<std::string>();
  PixelArray& pixels = form.array.pixels;
  pixels.type = static_cast<PixelType>(json.at("type").get<int>());
  pixels.order = static_cast<AxisOrder>(json.at("order").get<int>());
  pixels.height = json.at("shape").at(0).get<std::uint32_t>();
  pixels.width = json.at("shape").at(1).get<std::uint32_t>();
  pixels.channels = json.at("shape").at(2).get<std::uint32_t>();
  form.array.is_unit_range = json.at("is_unit_range").get<bool>();
  return form;
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
  return {{"classes", source.classes},
          {"left_out", source.left_out},
          {"key_rule", static_cast<int>(source.key_rule)},
          {"shards", std::move(shards)}};
}

Source source_of_json(const Json& json, const std::filesystem::path& folder) {
  Source source;
  source.classes = json.at("classes").get<std::vector<std::string>>();
  source.left_out = json.at("left_out").get<LeftOut>();
  source.key_rule = static_cast<KeyRule>(json.at("key_rule").get<int>());
  for (const Json& entry : json.at("shards")) {
    SourceShard shard{stamp_of_json(entry.at("given")), {}, form_of_json(entry.at("form"))};
    shard.data = shard.given;
    if (const auto copy = entry.find("copy"); copy != entry.end()) {
      shard.data = stamp_of_json(*copy);
      shard.data.path = folder / shard.data.path;
    }
    source.shards.push_back(std::move(shard));
  }
  return source;
}

}  // namespace precache
