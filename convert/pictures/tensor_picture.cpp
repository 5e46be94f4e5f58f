// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <png.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <stdexcept>

#include "convert/pictures/painting.hpp"
#include "formats/bytes/half_float.hpp"
#include "precache/formats/normalization.hpp"

namespace precache {
namespace {

constexpr std::uint32_t kMostPixelsOfSide = 2048;

/// The normalisation of a manifest's recipe; none if there is no recipe that can be read.
std::optional<Normalization> normalization_of(const std::optional<StoredRecipe>& recipe) {
  if (!recipe || recipe->is_empty() || !recipe->problem().empty()) return std::nullopt;
  return recipe->normalization().value_or(Normalization{});
}

std::uint8_t to_pixel(float value) {
  // NaN fails both comparisons and becomes black.
  return value > 0 ? static_cast<std::uint8_t>(std::lround(std::min(value, 255.0F))) : 0;
}

}  // namespace

TensorPainter::TensorPainter(const Inspection& facts) : spec_(*facts.spec) {
  if (spec_.dtype != DType::kUint8) choose_lines(facts);
  if (spec_.channels == 2 || spec_.channels > kColors) {
    drawing_ += fmt::format("{}channel{} of {}", drawing_.empty() ? "" : "; ",
                            spec_.channels == 2 ? " 0" : "s 0 to 2", spec_.channels);
  }
}

void TensorPainter::choose_lines(const Inspection& facts) {
  if (const auto normalization = normalization_of(facts.recipe)) {
    for (std::size_t i = 0; i < kColors; ++i) {
      lines_[i] = {255 * normalization->std[i], 255 * normalization->mean[i]};
    }
    drawing_ = *normalization == Normalization{} ? "values times 255" : "normalisation undone";
    return;
  }
  const double low = facts.values ? facts.values->low : 0;
  const double high = facts.values ? facts.values->high : 1;
  Line line{255, 0};
  if (low >= 0 && high <= 1) {
    drawing_ = "values times 255";
  } else if (low >= 0 && high <= 255) {
    line = {1, 0};
  } else {
    line.scale = static_cast<float>(255 / std::max(high - low, 1e-30));
    line.offset = static_cast<float>(-low) * line.scale;
    drawing_ = fmt::format("values from {:.4g} to {:.4g} stretched", low, high);
  }
  std::ranges::fill(lines_, line);
}

float TensorPainter::value(std::span<const std::byte> tensor, std::size_t element) const {
  const std::byte* const at = tensor.data() + element * size_bytes(spec_.dtype);
  if (spec_.dtype == DType::kUint8) return static_cast<float>(std::to_integer<int>(*at));
  if (spec_.dtype == DType::kFloat32) {
    float result = 0;
    std::memcpy(&result, at, sizeof result);
    return result;
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, at, sizeof bits);
  return spec_.dtype == DType::kFloat16 ? from_float16(bits) : from_bfloat16(bits);
}

Picture TensorPainter::paint(std::span<const std::byte> tensor) const {
  // Averaging over more pixels than this makes no visible difference.
  const std::uint32_t step = std::max(std::max(spec_.width, spec_.height) / kMostPixelsOfSide, 1U);
  const bool chw = spec_.layout == Layout::kChw;
  const std::size_t channel_step = chw ? std::size_t{spec_.width} * spec_.height : 1;
  const std::size_t pixel_step = chw ? 1 : spec_.channels;
  const bool is_grey = spec_.channels < kColors;
  Picture picture{(spec_.width + step - 1) / step, (spec_.height + step - 1) / step, {}};
  picture.rgb.reserve(std::size_t{picture.width} * picture.height * kColors);
  for (std::uint32_t y = 0; y < spec_.height; y += step) {
    for (std::uint32_t x = 0; x < spec_.width; x += step) {
      const std::size_t pixel = (std::size_t{y} * spec_.width + x) * pixel_step;
      for (std::size_t color = 0; color < kColors; ++color) {
        const std::size_t channel = is_grey ? 0 : color;
        const float found = value(tensor, channel * channel_step + pixel);
        picture.rgb.push_back(to_pixel(found * lines_[channel].scale + lines_[channel].offset));
      }
    }
  }
  return fit_tile(picture);
}

std::pair<std::uint32_t, std::uint32_t> tile_size(std::uint32_t width, std::uint32_t height) {
  const std::uint32_t longer = std::max(width, height);
  const auto scaled = [&](std::uint32_t side) {
    if (longer <= kTileSide) return side * (kTileSide / longer);
    const auto shrunk = static_cast<std::uint32_t>(std::uint64_t{side} * kTileSide / longer);
    return std::max<std::uint32_t>(shrunk, 1);
  };
  return {scaled(width), scaled(height)};
}

Picture fit_tile(const Picture& picture) {
  const auto [tile_width, tile_height] = tile_size(picture.width, picture.height);
  Picture tile{tile_width, tile_height, {}};
  tile.rgb.resize(std::size_t{tile.width} * tile.height * kColors);
  // Each row or column of the tile covers at least one of the picture.
  const auto begin = [](std::uint32_t i, std::uint32_t from, std::uint32_t to) {
    return static_cast<std::uint32_t>(std::uint64_t{i} * from / to);
  };
  for (std::uint32_t y = 0; y < tile.height; ++y) {
    const std::uint32_t top = begin(y, picture.height, tile.height);
    const std::uint32_t bottom = std::max(begin(y + 1, picture.height, tile.height), top + 1);
    for (std::uint32_t x = 0; x < tile.width; ++x) {
      const std::uint32_t left = begin(x, picture.width, tile.width);
      const std::uint32_t right = std::max(begin(x + 1, picture.width, tile.width), left + 1);
      std::uint64_t sums[kColors]{};
      for (std::uint32_t row = top; row < bottom; ++row) {
        for (std::uint32_t column = left; column < right; ++column) {
          const std::size_t at = (std::size_t{row} * picture.width + column) * kColors;
          for (std::size_t color = 0; color < kColors; ++color) {
            sums[color] += picture.rgb[at + color];
          }
        }
      }
      const std::uint64_t count = std::uint64_t{bottom - top} * (right - left);
      for (std::size_t color = 0; color < kColors; ++color) {
        tile.rgb[(std::size_t{y} * tile.width + x) * kColors + color] =
            static_cast<std::uint8_t>((sums[color] + count / 2) / count);
      }
    }
  }
  return tile;
}

std::string encode_png(const Picture& picture) {
  png_image image{};  // libpng's simple interface, which does not jump
  image.version = PNG_IMAGE_VERSION;
  image.width = picture.width;
  image.height = picture.height;
  image.format = PNG_FORMAT_RGB;
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string file(bytes, '\0');
  if (png_image_write_to_memory(&image, file.data(), &bytes, 0, picture.rgb.data(), 0, nullptr) ==
      0) {
    throw std::runtime_error(std::string("libpng cannot write a picture: ") + image.message);
  }
  file.resize(bytes);
  return file;
}

}  // namespace precache
