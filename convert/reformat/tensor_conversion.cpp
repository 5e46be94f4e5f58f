// SPDX-License-Identifier: Apache-2.0
#include "convert/reformat/tensor_conversion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "precache/formats/error.hpp"

namespace precache {
namespace {

using Json = nlohmann::ordered_json;

/// What a recipe says of the values of a tensor.
struct Values {
  bool are_known = false;  // pixels by the rule below
  std::optional<Normalization> normalize;
};

Values values_of(const TensorMeaning& meaning) {
  Values values;
  try {
    const Json recipe = Json::parse(meaning.recipe);
    values.are_known =
        recipe.value("dtype", "") == name(meaning.spec.dtype) && !recipe.contains("values");
    if (recipe.contains("normalize")) {
      values.normalize.emplace();
      values.normalize->mean = recipe.at("normalize").at("mean").get<std::array<float, 3>>();
      values.normalize->std = recipe.at("normalize").at("std").get<std::array<float, 3>>();
    }
  } catch (const Json::exception& error) {
    throw InvalidArgument(
        fmt::format("the recipe of the dataset makes no sense: {}", error.what()));
  }
  if (meaning.spec.dtype == DType::kUint8) values = {.are_known = true, .normalize = {}};
  return values;
}

/// In the order that Recipe::to_json() has: what became of the pixels comes last.
std::string recipe_text(const std::string& before, const TensorSpec& spec,
                        const std::optional<Normalization>& normalize, bool values_are_known) {
  const Json old = Json::parse(before);
  Json recipe = Json::object();
  for (const auto& [key, value] : old.items()) {
    if (key != "dtype" && key != "normalize" && key != "values" && key != "layout") {
      recipe[key] = value;
    }
  }
  recipe["dtype"] = name(spec.dtype);
  if (normalize) recipe["normalize"] = {{"mean", normalize->mean}, {"std", normalize->std}};
  if (!values_are_known) recipe["values"] = "unknown";
  recipe["layout"] = name(spec.layout);
  return recipe.dump();
}

void check_normalization(const Normalization& normalize, const TensorSpec& stored,
                         const Values& values, DType dtype) {
  if (values.normalize) {
    throw InvalidArgument("the tensors are normalised already",
                          "Leave out --normalize; --dtype uint8 gives the pixels again.");
  }
  if (!values.are_known) {
    throw InvalidArgument(
        fmt::format("nobody knows what the values of these {} tensors mean, so they cannot be "
                    "normalised",
                    name(stored.dtype)),
        "Normalise them where they were made, or while reading.");
  }
  if (dtype == DType::kUint8) {
    throw InvalidArgument("--normalize needs a float --dtype",
                          "Add --dtype float16, bfloat16 or float32; or keep uint8 and normalise "
                          "while reading, which takes a quarter of the bytes.");
  }
  const auto differ = [](const std::array<float, 3>& values_of_channels) {
    return values_of_channels !=
           std::array{values_of_channels[0], values_of_channels[0], values_of_channels[0]};
  };
  if (stored.channels == 1 && (differ(normalize.mean) || differ(normalize.std))) {
    throw InvalidArgument("--normalize has three channels, the tensors have one",
                          "Give MEAN/STD, such as 0.449/0.226.");
  }
  if (!normalize.has_usable_std()) {
    throw InvalidArgument("--normalize needs standard deviations above 0",
                          "As float32, from 1.2e-38 to 3.4e38.");
  }
}

}  // namespace

TensorMeaning foreign_meaning(const TensorSpec& spec) {
  const Json size = {{"size", {spec.height, spec.width}}};
  return {spec, recipe_text(size.dump(), spec, {}, spec.dtype == DType::kUint8)};
}

TensorConversion::TensorConversion(const TensorMeaning& stored, const ReformatOptions& options)
    : stored_dtype_(stored.spec.dtype) {
  const Values values = values_of(stored);
  const bool has_floats = stored.spec.dtype != DType::kUint8;
  const DType dtype = options.dtype.value_or(stored.spec.dtype);
  if (options.normalize) check_normalization(*options.normalize, stored.spec, values, dtype);
  if (has_floats && (dtype != stored.spec.dtype || options.normalize) && values.are_known) {
    recovery_.emplace(stored.spec, values.normalize.value_or(Normalization()));
    if (!recovery_->is_possible()) recovery_.reset();
  }
  if (has_floats && !recovery_ && (dtype == DType::kUint8 || options.normalize)) {
    throw InvalidArgument(
        fmt::format("the pixels of these {} tensors cannot be found again",
                    name(stored.spec.dtype)),
        values.are_known
            ? "Their normalisation has made some of them equal. Build them anew from the images."
            : "Only a dataset.json tells which value a pixel became. Choose a float --dtype.");
  }
  BatchTransform transform;
  transform.dtype = dtype;
  transform.layout = options.layout.value_or(stored.spec.layout);
  // What was normalised stays so, in every float type.
  const auto normalize = options.normalize ? options.normalize : values.normalize;
  if (dtype != DType::kUint8 && (recovery_ || !has_floats)) transform.normalize = normalize;
  TensorSpec from = stored.spec;
  if (recovery_) from.dtype = DType::kUint8;
  pass_.emplace(from, transform);
  result_.spec = pass_->result();
  result_.recipe =
      result_.spec == stored.spec && !options.normalize
          ? stored.recipe
          : recipe_text(stored.recipe, result_.spec,
                        dtype == DType::kUint8 ? std::nullopt : normalize, values.are_known);
}

bool TensorConversion::run(std::span<const std::byte> tensor, std::span<std::byte> out,
                           std::vector<std::uint8_t>& pixels) const {
  if (recovery_) {
    pixels.resize(tensor.size() / size_bytes(stored_dtype_));
    if (!recovery_->run(tensor, pixels)) return false;
    tensor = std::as_bytes(std::span(pixels));
  }
  pass_->run(tensor, {}, out.data(), false);
  return true;
}

}  // namespace precache
