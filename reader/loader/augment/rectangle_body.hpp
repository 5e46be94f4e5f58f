// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

#include "formats/bytes/host_device.hpp"
#include "reader/loader/augment/exponential.hpp"
#include "reader/loader/augment/operation_random.hpp"

namespace precache::augment {

struct Rectangle {
  std::uint32_t top = 0;
  std::uint32_t left = 0;
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  bool operator==(const Rectangle&) const = default;
};

/// The ranges that rectangles are drawn from: torchvision's `scale` and `ratio`.
struct RectangleRanges {
  double scale[2];
  double ratio[2];
  double log_ratio[2];  // logarithm_of() of the same
};

/// torchvision's RandomResizedCrop.get_params: ten tries, and then the largest centred rectangle
/// whose shape is in the range.
PRECACHE_HOST_DEVICE inline Rectangle choose_rectangle(const RectangleRanges& ranges,
                                                       OperationRandom& random,
                                                       std::uint32_t image_height,
                                                       std::uint32_t image_width) {
  constexpr int kTries = 10;
  const double area = static_cast<double>(std::uint64_t{image_height} * image_width);
  for (int i = 0; i < kTries; ++i) {
    const double target = area * random.uniform(ranges.scale[0], ranges.scale[1]);
    const double ratio = exponential_of(random.uniform(ranges.log_ratio[0], ranges.log_ratio[1]));
    const double width = round_half_even(std::sqrt(target * ratio));
    const double height = round_half_even(std::sqrt(target / ratio));
    if (!(width > 0 && width <= image_width && height > 0 && height <= image_height)) continue;
    const auto h = static_cast<std::uint32_t>(height);
    const auto w = static_cast<std::uint32_t>(width);
    const auto top = static_cast<std::uint32_t>(random.below(std::uint64_t{image_height} - h + 1));
    const auto left = static_cast<std::uint32_t>(random.below(std::uint64_t{image_width} - w + 1));
    return {top, left, h, w};
  }
  const double ratio = static_cast<double>(image_width) / image_height;
  double width = image_width;
  double height = image_height;
  if (ratio < ranges.ratio[0]) {
    height = round_half_even(width / ranges.ratio[0]);
  } else if (ratio > ranges.ratio[1]) {
    width = round_half_even(height * ranges.ratio[1]);
  }
  // Rounding may leave nothing of a side of one pixel, or more than there is.
  const auto within = [](double side, std::uint32_t most) {
    return side < 1 ? 1U : side > most ? most : static_cast<std::uint32_t>(side);
  };
  const std::uint32_t h = within(height, image_height);
  const std::uint32_t w = within(width, image_width);
  return {(image_height - h) / 2, (image_width - w) / 2, h, w};
}

/// The nearest whole pixel of the stored picture to edge `at` of an original with `from` pixels.
PRECACHE_HOST_DEVICE inline std::uint32_t stored_edge(std::uint64_t at, std::uint64_t from,
                                                      std::uint64_t to) {
  const std::uint64_t product = at * to;
  const std::uint64_t whole = product / from;
  const std::uint64_t twice = 2 * (product % from);
  const bool up = twice > from || (twice == from && whole % 2 == 1);
  return static_cast<std::uint32_t>(whole + (up ? 1 : 0));
}

/// A rectangle of an original of `from_height` x `from_width` in a stored picture of another size:
/// its edges are rounded to whole pixels, and at least one pixel is left.
PRECACHE_HOST_DEVICE inline Rectangle scaled(const Rectangle& original, std::uint32_t from_height,
                                             std::uint32_t from_width, std::uint32_t height,
                                             std::uint32_t width) {
  const auto side = [](std::uint32_t first, std::uint32_t length, std::uint32_t from,
                       std::uint32_t to, std::uint32_t& begin, std::uint32_t& count) {
    begin = stored_edge(first, from, to);
    const std::uint32_t end = stored_edge(std::uint64_t{first} + length, from, to);
    if (begin == to) --begin;
    count = end > begin ? end - begin : 1;
  };
  Rectangle result;
  side(original.top, original.height, from_height, height, result.top, result.height);
  side(original.left, original.width, from_width, width, result.left, result.width);
  return result;
}

}  // namespace precache::augment
