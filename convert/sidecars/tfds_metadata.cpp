// SPDX-License-Identifier: Apache-2.0
#include "convert/sidecars/tfds_metadata.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "convert/sidecars/sidecar_file.hpp"
#include "formats/os/file.hpp"
#include "precache/formats/error.hpp"

namespace precache::tfds {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kInfoName = "dataset_info.json";
constexpr const char* kFeaturesName = "features.json";
constexpr const char* kLabelsName = "label.labels.txt";
// Marks metadata of precache: Hugging Face writes a dataset_info.json, too.
constexpr std::string_view kDescription = "Tensor shards made by precache; see dataset.json.";
constexpr std::string_view kClasses = "tensorflow_datasets.core.features.";
// TensorFlow Datasets expects shard numbers of five digits, or more if there are more shards.
constexpr std::size_t kShardsOfFiveDigits = 99'999;
constexpr std::size_t kShardsOfSixDigits = 999'999;

bool is_ours(std::string_view info) { return info.find(kDescription) != std::string_view::npos; }

std::string file_template(const std::string& split, const std::vector<ShardEntry>& shards) {
  for (std::size_t i = 0; i < shards.size(); ++i) {
    if (shards[i].file == fmt::format("{}-{:06}.tfrecord", split, i)) continue;
    throw Unsupported(fmt::format(
        "TensorFlow Datasets would look for shard {} of '{}' under another name than '{}'", i,
        split, shards[i].file));
  }
  if (shards.size() > kShardsOfSixDigits) {
    throw Unsupported(
        fmt::format("TensorFlow Datasets would look for the {} shards of '{}' under other names",
                    shards.size(), split));
  }
  return shards.size() > kShardsOfFiveDigits ? "{SPLIT}-{SHARD_INDEX}.{FILEFORMAT}"
                                             : "{SPLIT}-0{SHARD_INDEX}.{FILEFORMAT}";
}

// In the JSON of protobuf, 64-bit numbers are strings.
Json split_json(const std::string& split, const SplitEntry& entry) {
  Json lengths = Json::array();
  std::uint64_t bytes = 0;
  for (const ShardEntry& shard : entry.shards) {
    lengths.push_back(std::to_string(shard.samples));
    bytes += shard.bytes;
  }
  return {{"name", split},
          {"filepathTemplate", file_template(split, entry.shards)},
          {"shardLengths", std::move(lengths)},
          {"numBytes", std::to_string(bytes)}};
}

std::string info_text(const Manifest& manifest) {
  Json splits = Json::array();
  for (const auto& [split, entry] : manifest.splits) splits.push_back(split_json(split, entry));
  const Json json{{"name", "precache"},
                  {"version", "1.0.0"},
                  {"description", kDescription},
                  {"fileFormat", "tfrecord"},
                  {"supervisedKeys", {{"input", "image"}, {"output", "label"}}},
                  {"splits", std::move(splits)}};
  return json.dump(2) + "\n";
}

Json feature(std::string_view module, std::string_view type, const char* key, Json content) {
  return {{"pythonClassName", fmt::format("{}{}.{}", kClasses, module, type)},
          {key, std::move(content)}};
}

/// The columns that all splits have, as all have the same features.
std::vector<NamedColumn> common_columns(const Manifest& manifest) {
  std::vector<NamedColumn> columns = manifest.splits.begin()->second.columns;
  for (const auto& [split_name, split] : manifest.splits) {
    std::erase_if(columns, [&, &own = split.columns](const NamedColumn& column) {
      return std::ranges::find(own, column) == own.end();
    });
  }
  return columns;
}

Json column_feature(const NamedColumn& column) {
  Json extents = Json::array();
  for (const std::uint32_t extent : column.shape) extents.push_back(std::to_string(extent));
  Json shape = extents.empty() ? Json::object() : Json{{"dimensions", std::move(extents)}};
  return feature("tensor_feature", "Tensor", "tensor",
                 {{"dtype", name(column.type)},
                  {"encoding", column.type == ValueType::kFloat32 ? "none" : "bytes"},
                  {"shape", std::move(shape)}});
}

std::string features_text(const Manifest& manifest) {
  Json extents = Json::array();
  for (const std::uint32_t extent : manifest.spec.shape())
    extents.push_back(std::to_string(extent));
  Json image{{"dtype", name(manifest.spec.dtype)},
             {"encoding", "bytes"},
             {"shape", {{"dimensions", std::move(extents)}}}};
  Json number{{"dtype", "int64"}, {"encoding", "none"}, {"shape", Json::object()}};
  Json features;
  features["image"] = feature("tensor_feature", "Tensor", "tensor", std::move(image));
  features["label"] = manifest.classes.empty()
                          ? feature("scalar", "Scalar", "tensor", std::move(number))
                          : feature("class_label_feature", "ClassLabel", "classLabel",
                                    {{"numClasses", std::to_string(manifest.classes.size())}});
  features["key"] = feature("text_feature", "Text", "text", Json::object());
  for (const NamedColumn& column : common_columns(manifest)) {
    features[column.name] = column_feature(column);
  }
  return feature("features_dict", "FeaturesDict", "featuresDict",
                 {{"features", std::move(features)}})
             .dump(2) +
         "\n";
}

/// One name per line; empty if a name does not fit. TensorFlow Datasets then shows numbers.
std::string labels_text(const std::vector<std::string>& classes) {
  std::string text;
  for (const std::string& one : classes) {
    if (one.empty() || one.find_first_of("\r\n") != std::string::npos) return {};
    text += one + "\n";
  }
  return text;
}

}  // namespace

bool has_metadata(const fs::path& folder) {
  const auto head = head_of(folder / kInfoName);
  return head && is_ours(*head);
}

fs::path write_metadata(const fs::path& folder, const Manifest& manifest) {
  const std::string info = info_text(manifest);
  // Without a dataset_info.json by precache, the other files are third-party, too.
  const bool replaces = has_metadata(folder);
  const Recognize any = [=](std::string_view) { return replaces; };
  if (!replaces && fs::exists(folder / kInfoName)) refuse_to_replace(folder / kInfoName);
  write_sidecar(folder / kFeaturesName, features_text(manifest), any);
  if (const std::string labels = labels_text(manifest.classes); !labels.empty()) {
    write_sidecar(folder / kLabelsName, labels, any);
  } else {
    remove_sidecar(folder / kLabelsName, any);
  }
  write_sidecar(folder / kInfoName, info, is_ours);
  return folder / kInfoName;
}

void remove_metadata(const fs::path& folder) {
  if (!has_metadata(folder)) return;
  const Recognize any = [](std::string_view) { return true; };
  remove_sidecar(folder / kLabelsName, any);
  remove_sidecar(folder / kFeaturesName, any);
  remove_sidecar(folder / kInfoName, is_ours);
}

}  // namespace precache::tfds
