// SPDX-License-Identifier: Apache-2.0
#include "precache/formats/recipe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "formats/shard/limits.hpp"
#include "formats/shard/normalization_check.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

constexpr std::uint64_t kLargestTensorBytes = std::uint64_t{1} << 30;

using Json = nlohmann::ordered_json;

Json to_json(const Normalization& normalize) {
  return {{"mean", normalize.mean}, {"std", normalize.std}};
}

std::array<float, 3> channels_of(const Json& json) {
  if (!json.is_array() || json.size() != 3)
    throw InvalidArgument("`mean` and `std` must be arrays of three numbers");
  return json.get<std::array<float, 3>>();
}

/// Prints numbers with the digits of a float, and nested values without brackets.
std::string text_of(const Json& value, const char* separator) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return fmt::format("{:.6g}", value.get<double>());
  if (!value.is_structured()) return value.dump();
  std::string text;
  for (const auto& [key, part] : value.items()) {
    text += text.empty() ? "" : separator;
    text += value.is_object() ? key + " " + text_of(part, "/") : text_of(part, "x");
  }
  return text;
}

}  // namespace

void Recipe::validate() const {
  if (height == 0 || width == 0 || std::max(height, width) > kLargestTensorSide) {
    throw InvalidArgument(fmt::format("`size` {}x{} is out of range", height, width),
                          fmt::format("Choose sides from 1 to {}.", kLargestTensorSide));
  }
  if (resize > kLargestTensorSide) {
    throw InvalidArgument(fmt::format("`resize` {} is out of range", resize),
                          fmt::format("Choose sides from 1 to {}.", kLargestTensorSide));
  }
  if (spec().size_bytes() > kLargestTensorBytes) {
    throw InvalidArgument("one tensor would be larger than 1 GiB", "Choose a smaller `size`.");
  }
  if (resize != 0 && fit != Fit::kCrop) {
    throw InvalidArgument(fmt::format("`resize` cannot be combined with `fit` {}", name(fit)),
                          "`resize` is the shorter side before cropping, so it needs `fit` crop.");
  }
  if (pad_value != 0 && fit != Fit::kPad) {
    throw InvalidArgument(fmt::format("`pad_value` cannot be combined with `fit` {}", name(fit)));
  }
  if (normalize && dtype == DType::kUint8) {
    throw InvalidArgument("`normalize` needs a float `dtype`",
                          "Choose float16, bfloat16 or float32; or keep uint8 and normalise while "
                          "reading, which takes a quarter of the bytes.");
  }
  if (normalize && !normalize->has_usable_std()) {
    throw InvalidArgument("`normalize` needs standard deviations above 0",
                          "Choose values from 1.2e-38 to 1.");
  }
  if (normalize) check_unit_range(*normalize);
}

std::uint32_t Recipe::shorter_side() const {
  return resize != 0 ? resize : std::max(height, width);
}

TensorSpec Recipe::spec() const {
  return {.dtype = dtype,
          .layout = layout,
          .height = height,
          .width = width,
          .channels = color == Color::kRgb ? 3U : 1U};
}

std::string Recipe::to_json() const {
  Json json = {{"size", {height, width}}, {"fit", name(fit)}};
  if (fit == Fit::kCrop) json["resize"] = shorter_side();
  if (fit == Fit::kPad) json["pad_value"] = pad_value;
  json["filter"] = name(filter);
  json["color"] = name(color);
  json["exif"] = apply_exif ? "apply" : "ignore";
  json["dtype"] = name(dtype);
  if (normalize) json["normalize"] = precache::to_json(*normalize);
  json["layout"] = name(layout);
  return json.dump();
}

StoredRecipe::StoredRecipe(const Recipe& recipe) : StoredRecipe(parse(recipe.to_json())) {}

StoredRecipe StoredRecipe::of_unknown_origin(const TensorSpec& spec) {
  const Json size = {{"size", {spec.height, spec.width}}};
  return parse(size.dump()).with_values(spec, {}, spec.dtype == DType::kUint8);
}

StoredRecipe StoredRecipe::parse(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) throw InvalidArgument("the recipe must be a JSON object");
  StoredRecipe recipe;
  recipe.json_ = json.dump();
  for (const auto& [key, value] : json.items()) {
    if (key == "dtype" || key == "layout") continue;  // of the tensor
    recipe.text_ += (recipe.text_.empty() ? "" : ", ") + key + " ";
    recipe.text_ += text_of(value, value.is_object() ? " " : "x");
  }
  recipe.values_are_unknown_ = json.contains("values");
  try {
    if (json.contains("dtype")) recipe.dtype_ = json["dtype"].get<std::string>();
    if (json.contains("normalize")) {
      const Json& normalize = json["normalize"];
      recipe.normalize_ = {channels_of(normalize.at("mean")), channels_of(normalize.at("std"))};
    }
  } catch (const Json::exception& error) {
    recipe.problem_ = error.what();
  } catch (const InvalidArgument& error) {
    recipe.problem_ = error.what();
  }
  return recipe;
}

bool StoredRecipe::knows_values(DType dtype) const {
  return dtype == DType::kUint8 || (dtype_ == name(dtype) && !values_are_unknown_);
}

// The order of Recipe::to_json(): the keys about values come last.
StoredRecipe StoredRecipe::with_values(const TensorSpec& spec,
                                       const std::optional<Normalization>& normalize,
                                       bool values_are_known) const {
  const Json before = Json::parse(json_);
  Json recipe = Json::object();
  for (const auto& [key, value] : before.items()) {
    if (key != "dtype" && key != "normalize" && key != "values" && key != "layout") {
      recipe[key] = value;
    }
  }
  recipe["dtype"] = name(spec.dtype);
  if (normalize) recipe["normalize"] = precache::to_json(*normalize);
  if (!values_are_known) recipe["values"] = "unknown";
  recipe["layout"] = name(spec.layout);
  return parse(recipe.dump());
}

bool operator==(const StoredRecipe& a, const StoredRecipe& b) {
  return a.json_ == b.json_ || nlohmann::json::parse(a.json_) == nlohmann::json::parse(b.json_);
}

}  // namespace precache
