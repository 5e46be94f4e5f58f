// SPDX-License-Identifier: Apache-2.0
#include "convert/image/transform/mask_transform.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "formats/shard/file_kind.hpp"

namespace precache {
namespace {

constexpr std::uint8_t kPadding = 255;  // the class that losses ignore by custom

/// Gray values pass through unchanged: their brightness is themselves.
Recipe mask_recipe(Recipe recipe) {
  recipe.filter = Filter::kNearest;
  recipe.pad_value = kPadding;
  recipe.dtype = DType::kUint8;
  recipe.normalize.reset();
  recipe.layout = Layout::kHwc;
  recipe.color = Color::kGray;
  return recipe;
}

/// Whether some factor takes one size to the other, to a pixel.
bool has_aspect_of(const ImageHeader& image, const ImageHeader& mask) {
  const std::uint64_t across = std::uint64_t{mask.width} * image.height;
  const std::uint64_t down = std::uint64_t{mask.height} * image.width;
  return std::max(across, down) - std::min(across, down) <= std::max(image.width, image.height);
}

}  // namespace

MaskTransform::MaskTransform(const Recipe& recipe, std::uint64_t max_pixels)
    : transform_(mask_recipe(recipe), max_pixels) {}

std::optional<Rejection> MaskTransform::Decoder::open(std::span<const std::byte> file,
                                                      ImageHeader& header) {
  if (image_file_kind(file) != "PNG") {
    return Rejection{RejectionStage::kMask,
                     fmt::format("it is not a PNG file but {}", describe_file(file))};
  }
  if (auto rejection = png_.open(file, header)) return rejection;
  header.orientation = image_.orientation;
  if (has_aspect_of(image_, header)) return std::nullopt;
  return Rejection{
      RejectionStage::kMask,
      fmt::format("the mask is {}x{}, but the image is {}x{}: the aspect ratios differ",
                  header.width, header.height, image_.width, image_.height)};
}

std::optional<Rejection> MaskTransform::run(std::span<const std::byte> png,
                                            const ImageHeader& image, std::span<std::byte> mask) {
  decoder_.expect(image);
  return transform_.run(decoder_, png, mask);
}

}  // namespace precache
