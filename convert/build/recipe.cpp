// SPDX-License-Identifier: Apache-2.0
#include "precache/convert/recipe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "precache/formats/error.hpp"

namespace precache {
namespace {

constexpr std::uint32_t kLargestSide = 16384;
constexpr std::uint64_t kLargestTensorBytes = std::uint64_t{1} << 30;

}  // namespace

std::string_view name(Fit fit) {
  constexpr std::array<std::string_view, 3> kNames{"crop", "stretch", "pad"};
  return kNames[static_cast<std::size_t>(fit)];
}

std::string_view name(Filter filter) {
  constexpr std::array<std::string_view, 5> kNames{"nearest", "box", "bilinear", "bicubic",
                                                   "lanczos"};
  return kNames[static_cast<std::size_t>(filter)];
}

std::string_view name(Color color) { return color == Color::kRgb ? "rgb" : "gray"; }

void Recipe::validate() const {
  if (height == 0 || width == 0 || std::max(height, width) > kLargestSide) {
    throw InvalidArgument(fmt::format("a size of {}x{} is out of range", height, width),
                          fmt::format("Sides from 1 to {} are possible.", kLargestSide));
  }
  if (resize > kLargestSide) {
    throw InvalidArgument(fmt::format("--resize {} is out of range", resize),
                          fmt::format("Sides from 1 to {} are possible.", kLargestSide));
  }
  if (spec().size_bytes() > kLargestTensorBytes) {
    throw InvalidArgument("one tensor would be larger than 1 GiB", "Choose a smaller --size.");
  }
  if (resize != 0 && fit != Fit::kCrop) {
    throw InvalidArgument(fmt::format("--resize has no meaning with --fit {}", name(fit)),
                          "It is the shorter side before the crop of --fit crop.");
  }
  if (pad_value != 0 && fit != Fit::kPad) {
    throw InvalidArgument(fmt::format("--pad-value has no meaning with --fit {}", name(fit)));
  }
  if (normalize && dtype == DType::kUint8) {
    throw InvalidArgument(
        "--normalize needs a float --dtype",
        "Add --dtype float16, bfloat16 or float32; or keep uint8 and normalise while "
        "reading, which takes a quarter of the bytes.");
  }
  if (normalize && !normalize->has_usable_std()) {
    throw InvalidArgument("--normalize needs standard deviations above 0",
                          "As float32, from 1.2e-38 to 3.4e38.");
  }
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
  nlohmann::ordered_json json = {{"size", {height, width}}, {"fit", name(fit)}};
  if (fit == Fit::kCrop) json["resize"] = shorter_side();
  if (fit == Fit::kPad) json["pad_value"] = pad_value;
  json["filter"] = name(filter);
  json["color"] = name(color);
  json["exif"] = apply_exif ? "apply" : "ignore";
  json["dtype"] = name(dtype);
  if (normalize) json["normalize"] = {{"mean", normalize->mean}, {"std", normalize->std}};
  json["layout"] = name(layout);
  return json.dump();
}

}  // namespace precache
