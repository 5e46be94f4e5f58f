// SPDX-License-Identifier: Apache-2.0
#include "reader/loader/augment/geometry.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <tuple>

#include "reader/loader/augment/operation_checks.hpp"
#include "reader/loader/augment/padding_body.hpp"

namespace precache::augment {
namespace {

/// Half of a margin, rounded to even like torchvision's centre crop.
std::uint32_t half(std::uint32_t margin) {
  return margin / 2 + (margin % 2 == 1 && margin / 2 % 2 == 1 ? 1 : 0);
}

std::uint32_t lacking(std::uint32_t has, std::uint32_t needed) {
  return needed > has ? needed - has : 0;
}

std::uint8_t fill_of(const Fill* fill, std::size_t channel) {
  if (fill == nullptr || fill->empty()) return 0;
  return fill->size() == 1 ? fill->front() : (*fill)[channel];
}

}  // namespace

void check(const RandomResizedCrop& operation, const ImageShape&) {
  constexpr const char* kName = "RandomResizedCrop";
  check_size(kName, operation.height, operation.width);
  // A scale may begin at 0: empty rectangles are drawn again.
  const Lowest lowest = operation.scale[1] > 0 ? Lowest::kIncluded : Lowest::kExcluded;
  check_range(kName, "scale", operation.scale, 0, 1e6, lowest);
  check_range(kName, "ratio", operation.ratio, 0, 1e6, Lowest::kExcluded);
}

void check(const Resize& operation, const ImageShape& shape) {
  check_side("Resize", "height", operation.height);
  if (operation.width != 0) check_side("Resize", "width", operation.width);
  const ImageSize size = result_size(operation, shape);
  check_size("Resize", size.height, size.width);
}

void check(const CenterCrop& operation, const ImageShape&) {
  check_size("CenterCrop", operation.height, operation.width);
}

void check(const RandomCrop& operation, const ImageShape& shape) {
  constexpr const char* kName = "RandomCrop";
  check_size(kName, operation.height, operation.width);
  check_fill(kName, operation.fill, shape.channels);
  for (const std::uint32_t side : operation.padding) {
    if (side > kLargestSide) {
      throw InvalidArgument(
          fmt::format("{}: `padding` must be at most {}, got {}", kName, kLargestSide, side));
    }
  }
  const Border border = border_of(operation, shape);
  const std::uint32_t height = shape.height + border.top + border.bottom;
  const std::uint32_t width = shape.width + border.left + border.right;
  if (operation.height > height || operation.width > width) {
    throw InvalidArgument(fmt::format("{}: `size` {}x{} does not fit images of {}x{}", kName,
                                      operation.height, operation.width, height, width),
                          "Set `pad_if_needed`, or ask for a smaller size.");
  }
  const bool reflects = operation.padding_mode == PaddingMode::kReflect;
  if (!reflects && operation.padding_mode != PaddingMode::kSymmetric) return;
  const std::uint32_t less = reflects ? 1 : 0;
  if (std::max(border.left, border.right) > shape.width - less ||
      std::max(border.top, border.bottom) > shape.height - less) {
    throw InvalidArgument(
        fmt::format("{}: `padding` {} is larger than images of {}x{}", kName,
                    reflects ? "reflect" : "symmetric", shape.height, shape.width),
        "Use the padding mode constant or edge, or less padding.");
  }
}

void check(const RandomHorizontalFlip& operation, const ImageShape&) {
  check_chance("RandomHorizontalFlip", operation.p);
  if (operation.alternate && operation.p != 0.5) {
    throw InvalidArgument(
        fmt::format("RandomHorizontalFlip: `p` must be 0.5 with `alternate`, got {}", operation.p));
  }
}

void check(const RandomVerticalFlip& operation, const ImageShape&) {
  check_chance("RandomVerticalFlip", operation.p);
}

void check(const RandomQuarterTurn&, const ImageShape& shape) {
  if (shape.height == shape.width) return;
  throw InvalidArgument(fmt::format("RandomQuarterTurn needs square images, but they have {}x{}",
                                    shape.height, shape.width),
                        "Crop or resize to a square before it.");
}

ImageSize result_size(const RandomResizedCrop& operation, const ImageShape&) {
  return {operation.height, operation.width};
}

ImageSize result_size(const Resize& operation, const ImageShape& shape) {
  if (operation.width != 0) return {operation.height, operation.width};
  const auto [shorter, longer] = std::minmax(shape.height, shape.width);
  const double product = static_cast<double>(std::uint64_t{operation.height} * longer);
  const double other = product / shorter;
  // Too large for an integer is too large for a side.
  const std::uint32_t result =
      other > kLargestSide ? kLargestSide + 1 : static_cast<std::uint32_t>(other);
  if (shape.width <= shape.height) return {result, operation.height};
  return {operation.height, result};
}

ImageSize result_size(const CenterCrop& operation, const ImageShape&) {
  return {operation.height, operation.width};
}

ImageSize result_size(const RandomCrop& operation, const ImageShape&) {
  return {operation.height, operation.width};
}

Rectangle choose(const RandomResizedCrop& operation, OperationRandom& random,
                 const ImageShape& shape, const std::optional<ImageSize>& original) {
  const auto& [scale, ratio] = std::tie(operation.scale, operation.ratio);
  const RectangleRanges ranges{
      {scale[0], scale[1]}, {ratio[0], ratio[1]}, {logarithm_of(ratio[0]), logarithm_of(ratio[1])}};
  if (!original) return choose_rectangle(ranges, random, shape.height, shape.width);
  const Rectangle drawn = choose_rectangle(ranges, random, original->height, original->width);
  return scaled(drawn, original->height, original->width, shape.height, shape.width);
}

Rectangle choose(const RandomCrop& operation, OperationRandom& random, const ImageShape& shape) {
  const Border border = border_of(operation, shape);
  const std::uint32_t rows = shape.height + border.top + border.bottom - operation.height;
  const std::uint32_t columns = shape.width + border.left + border.right - operation.width;
  const auto top = static_cast<std::uint32_t>(random.below(std::uint64_t{rows} + 1));
  const auto left = static_cast<std::uint32_t>(random.below(std::uint64_t{columns} + 1));
  return {top, left, operation.height, operation.width};
}

Rectangle centre(const CenterCrop& operation, const ImageShape& shape) {
  return {half(lacking(operation.height, shape.height)),
          half(lacking(operation.width, shape.width)), operation.height, operation.width};
}

std::uint32_t choose(const RandomQuarterTurn&, OperationRandom& random, const ImageShape&) {
  return static_cast<std::uint32_t>(random.below(4));
}

Border border_of(const RandomCrop& operation, const ImageShape& shape) {
  const auto& [left, top, right, bottom] = operation.padding;
  Border border{left, top, right, bottom, operation.padding_mode, &operation.fill};
  if (!operation.pad_if_needed) return border;
  const std::uint32_t rows = lacking(shape.height + top + bottom, operation.height);
  const std::uint32_t columns = lacking(shape.width + left + right, operation.width);
  border.top += rows;
  border.bottom += rows;
  border.left += columns;
  border.right += columns;
  return border;
}

Border border_of(const CenterCrop& operation, const ImageShape& shape) {
  const std::uint32_t rows = lacking(shape.height, operation.height);
  const std::uint32_t columns = lacking(shape.width, operation.width);
  return {columns / 2, rows / 2, (columns + 1) / 2, (rows + 1) / 2};
}

bool is_inside(const Rectangle& rectangle, const Border& border, const ImageShape& shape) {
  return rectangle.top >= border.top && rectangle.left >= border.left &&
         rectangle.top + rectangle.height <= border.top + shape.height &&
         rectangle.left + rectangle.width <= border.left + shape.width;
}

void crop_padded(const PlanarWindow& window, const Border& border, const Rectangle& rectangle,
                 PlanarImage& out) {
  const ImageShape& shape = window.shape;
  out.resize({shape.channels, rectangle.height, rectangle.width});
  const std::int64_t top = std::int64_t{rectangle.top} - border.top;
  const std::int64_t left = std::int64_t{rectangle.left} - border.left;
  // The columns of the result that are inside the image.
  const std::int64_t width = rectangle.width;
  const std::int64_t begin = std::clamp<std::int64_t>(-left, 0, width);
  const std::int64_t end = std::clamp<std::int64_t>(shape.width - left, begin, width);
  for (std::uint32_t channel = 0; channel < shape.channels; ++channel) {
    const std::uint8_t fill = fill_of(border.fill, channel);
    for (std::uint32_t y = 0; y < rectangle.height; ++y) {
      std::uint8_t* const to = out.row(channel, y);
      const std::int64_t row = padded_source(top + y, shape.height, border.mode);
      if (row < 0) {
        std::memset(to, fill, rectangle.width);
        continue;
      }
      const std::uint8_t* const from =
          window.first + channel * window.channel + static_cast<std::size_t>(row) * window.row;
      const auto outside = [&](std::int64_t x) {
        const std::int64_t column = padded_source(left + x, shape.width, border.mode);
        to[x] = column < 0 ? fill : from[column];
      };
      for (std::int64_t x = 0; x < begin; ++x) outside(x);
      if (end > begin)
        std::memcpy(to + begin, from + left + begin, static_cast<std::size_t>(end - begin));
      for (std::int64_t x = end; x < width; ++x) outside(x);
    }
  }
}

void flip_vertically(PlanarImage& image) {
  for (std::uint32_t channel = 0; channel < image.channels(); ++channel) {
    for (std::uint32_t y = 0; y < image.height() / 2; ++y) {
      std::uint8_t* const row = image.row(channel, y);
      std::swap_ranges(row, row + image.width(), image.row(channel, image.height() - 1 - y));
    }
  }
}

void turn(PlanarImage& image, PlanarImage& spare, std::uint32_t quarters) {
  if (quarters == 0) return;
  spare.resize(image.shape());
  const std::uint32_t last = image.width() - 1;
  for (std::uint32_t channel = 0; channel < image.channels(); ++channel) {
    const std::uint8_t* const from = image.plane(channel);
    for (std::uint32_t y = 0; y <= last; ++y) {
      std::uint8_t* const to = spare.row(channel, y);
      const std::size_t width = image.width();
      for (std::uint32_t x = 0; x <= last; ++x) {
        to[x] = quarters == 1   ? from[x * width + (last - y)]
                : quarters == 2 ? from[(last - y) * width + (last - x)]
                                : from[(last - x) * width + y];
      }
    }
  }
  image.swap(spare);
}

}  // namespace precache::augment
