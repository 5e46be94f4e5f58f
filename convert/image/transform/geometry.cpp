// SPDX-License-Identifier: Apache-2.0
#include "convert/image/transform/geometry.hpp"

#include <algorithm>
#include <cmath>

namespace precache {
namespace {

// Python's round(): half to even, which is the floating-point environment's default.
std::uint32_t round_half_even(double value) {
  return static_cast<std::uint32_t>(std::nearbyint(value));
}

// torchvision's CenterCrop, which pads with zeros where the image is smaller.
AxisGeometry centre(std::uint32_t source, std::uint32_t resized, std::uint32_t size) {
  if (resized < size) return {source, resized, 0, resized, (size - resized) / 2};
  return {source, resized, round_half_even((resized - size) / 2.0), size, 0};
}

Geometry crop(const Recipe& recipe, std::uint32_t width, std::uint32_t height) {
  const std::uint64_t side = recipe.shorter_side();
  const auto [shorter, longer] = std::minmax(width, height);
  const auto resized_longer =
      static_cast<std::uint32_t>(static_cast<double>(side * longer) / static_cast<double>(shorter));
  const auto resized_shorter = static_cast<std::uint32_t>(side);
  const bool portrait = width <= height;
  return {centre(width, portrait ? resized_shorter : resized_longer, recipe.width),
          centre(height, portrait ? resized_longer : resized_shorter, recipe.height)};
}

// Pillow's ImageOps.pad.
AxisGeometry pad_axis(std::uint32_t source, std::uint32_t resized, std::uint32_t size) {
  return {source, resized, 0, resized, round_half_even((size - resized) * 0.5)};
}

Geometry pad(const Recipe& recipe, std::uint32_t width, std::uint32_t height) {
  const double w = width;
  const double h = height;
  std::uint32_t resized_width = recipe.width;
  std::uint32_t resized_height = recipe.height;
  const double ratio = w / h;
  const double wanted = static_cast<double>(recipe.width) / recipe.height;
  if (ratio > wanted) {
    resized_height = round_half_even(h / w * recipe.width);
  } else if (ratio < wanted) {
    resized_width = round_half_even(w / h * recipe.height);
  }
  return {pad_axis(width, resized_width, recipe.width),
          pad_axis(height, resized_height, recipe.height)};
}

}  // namespace

Geometry make_geometry(const Recipe& recipe, std::uint32_t width, std::uint32_t height) {
  switch (recipe.fit) {
    case Fit::kCrop:
      return crop(recipe, width, height);
    case Fit::kPad:
      return pad(recipe, width, height);
    case Fit::kStretch:
      break;
  }
  return {{width, recipe.width, 0, recipe.width, 0}, {height, recipe.height, 0, recipe.height, 0}};
}

}  // namespace precache
