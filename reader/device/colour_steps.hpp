// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "reader/device/picture.hpp"
#include "reader/loader/augment/colour_body.hpp"
#include "reader/loader/augment/level_tables_body.hpp"

/// The colour operations, as reader/loader/augment/colour.hpp has them.
namespace precache::device {

/// Replaces all pixels of three channels: `pixel(Rgb)` computes the new ones.
template <typename Pixel>
PRECACHE_HOST_DEVICE inline void replace_colours(const Block& block, Picture& picture,
                                                 const Pixel& pixel) {
  const PictureView& in = picture.view;
  const std::uint32_t plane = in.height * in.width;
  std::byte* const to = picture.next;
  block.each(plane, [&](std::uint32_t i) {
    const std::uint32_t y = i / in.width;
    const std::uint32_t x = i - y * in.width;
    const augment::Rgb result =
        pixel(augment::Rgb{in.pixel(0, y, x), in.pixel(1, y, x), in.pixel(2, y, x)});
    to[i] = static_cast<std::byte>(result.r);
    to[plane + i] = static_cast<std::byte>(result.g);
    to[2 * std::uint64_t{plane} + i] = static_cast<std::byte>(result.b);
  });
  picture.hold_next(in.height, in.width);
}

/// Replaces every byte: `byte(old)` computes the new one.
template <typename Byte>
PRECACHE_HOST_DEVICE inline void replace_bytes(const Block& block, Picture& picture,
                                               const Byte& byte) {
  const PictureView& in = picture.view;
  picture.replace(
      block, in.height, in.width,
      [&](std::uint32_t c, std::uint32_t y, std::uint32_t x) { return byte(in.pixel(c, y, x)); });
}

PRECACHE_HOST_DEVICE inline void adjust_contrast(const Block& block, Picture& picture,
                                                 float factor) {
  const PictureView& in = picture.view;
  const std::uint32_t plane = in.height * in.width;
  const bool has_colours = picture.channels == 3;
  const std::uint64_t sum = block.sum(plane, [&](std::uint32_t i) -> std::uint32_t {
    const std::uint32_t y = i / in.width;
    const std::uint32_t x = i - y * in.width;
    if (!has_colours) return in.pixel(0, y, x);
    return augment::luma(in.pixel(0, y, x), in.pixel(1, y, x), in.pixel(2, y, x));
  });
  const double mean = static_cast<double>(sum) / static_cast<double>(plane);
  const auto grey = static_cast<std::uint8_t>(mean + 0.5);
  replace_bytes(block, picture,
                [&](std::uint8_t pixel) { return augment::blend(grey, pixel, factor); });
}

PRECACHE_HOST_DEVICE inline void adjust_saturation(const Block& block, Picture& picture,
                                                   float factor) {
  if (picture.channels != 3) return;
  replace_colours(block, picture, [&](augment::Rgb pixel) {
    const std::uint8_t grey = augment::luma(pixel.r, pixel.g, pixel.b);
    return augment::Rgb{augment::blend(grey, pixel.r, factor),
                        augment::blend(grey, pixel.g, factor),
                        augment::blend(grey, pixel.b, factor)};
  });
}

PRECACHE_HOST_DEVICE inline void adjust_hue(const Block& block, Picture& picture, double factor) {
  if (picture.channels != 3) return;
  const auto shift = static_cast<std::uint8_t>(static_cast<std::int32_t>(factor * 255));
  replace_colours(block, picture, [&](augment::Rgb pixel) {
    augment::Hsv hsv = augment::hsv_of(pixel);
    hsv.h = static_cast<std::uint8_t>(hsv.h + shift);
    return augment::rgb_of(hsv);
  });
}

PRECACHE_HOST_DEVICE inline void jitter(const Block& block, Picture& picture,
                                        const DeviceStep& step, const StepDraw& draw) {
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t change = draw.order[i];
    if (!step.jitters[change]) continue;
    const double factor = draw.factors[change];
    if (change == 0) {
      replace_bytes(block, picture, [&](std::uint8_t pixel) {
        return augment::blend(0, pixel, static_cast<float>(factor));
      });
    } else if (change == 1) {
      adjust_contrast(block, picture, static_cast<float>(factor));
    } else if (change == 2) {
      adjust_saturation(block, picture, static_cast<float>(factor));
    } else {
      adjust_hue(block, picture, factor);
    }
  }
}

PRECACHE_HOST_DEVICE inline void to_grayscale(const Block& block, Picture& picture) {
  if (picture.channels != 3) return;
  replace_colours(block, picture, [](augment::Rgb pixel) {
    const std::uint8_t grey = augment::luma(pixel.r, pixel.g, pixel.b);
    return augment::Rgb{grey, grey, grey};
  });
}

PRECACHE_HOST_DEVICE inline void adjust_sharpness(const Block& block, Picture& picture,
                                                  float factor) {
  const PictureView& in = picture.view;
  if (in.height < 3 || in.width < 3) return;  // Pillow does not smooth these
  picture.replace(
      block, in.height, in.width, [&](std::uint32_t c, std::uint32_t y, std::uint32_t x) {
        const std::uint8_t middle = in.pixel(c, y, x);
        std::uint8_t smoothed = middle;
        if (y != 0 && x != 0 && y + 1 != in.height && x + 1 != in.width) {
          std::uint32_t around = 0;
          for (std::int64_t row = std::int64_t{y} - 1; row <= std::int64_t{y} + 1; ++row) {
            for (std::int64_t column = std::int64_t{x} - 1; column <= std::int64_t{x} + 1;
                 ++column) {
              around += in.pixel(c, row, column);
            }
          }
          smoothed = augment::smooth(around - middle, middle);
        }
        return augment::blend(smoothed, middle, factor);
      });
}

/// Fills the block's table with the levels of the pixels that are counted.
PRECACHE_HOST_DEVICE inline void make_levels(const Block& block, bool equalize) {
  BlockMemory& memory = block.memory();
  block.once([&] {
    const std::uint32_t* const counts = memory.counts;
    if (equalize) {
      const std::uint64_t step = augment::equalizing_step(counts);
      std::uint64_t below = step / 2;
      for (std::uint32_t value = 0; value < 256; ++value) {
        memory.levels[value] =
            step == 0 ? static_cast<std::uint8_t>(value) : augment::equalized(below, step);
        below += counts[value];
      }
      return;
    }
    std::uint32_t low = 0;
    std::uint32_t high = 255;
    while (low < 255 && counts[low] == 0) ++low;
    while (high > 0 && counts[high] == 0) --high;
    for (std::uint32_t value = 0; value < 256; ++value) {
      memory.levels[value] = low >= high ? static_cast<std::uint8_t>(value)
                                         : augment::stretched(value, static_cast<std::uint8_t>(low),
                                                              static_cast<std::uint8_t>(high));
    }
  });
}

/// RandomEqualize and RandomAutocontrast: each channel by a table that its histogram gives.
PRECACHE_HOST_DEVICE inline void change_levels(const Block& block, Picture& picture,
                                               bool equalize) {
  const PictureView& in = picture.view;
  const std::uint32_t plane = in.height * in.width;
  BlockMemory& memory = block.memory();
  for (std::uint32_t c = 0; c < picture.channels; ++c) {
    const auto pixel = [&](std::uint32_t i) {
      const std::uint32_t y = i / in.width;
      return in.pixel(c, y, i - y * in.width);
    };
    block.each(256, [&](std::uint32_t value) { memory.counts[value] = 0; });
    block.each(plane, [&](std::uint32_t i) { Block::count(memory.counts[pixel(i)]); });
    make_levels(block, equalize);
    std::byte* const to = picture.next + std::uint64_t{c} * plane;
    block.each(plane,
               [&](std::uint32_t i) { to[i] = static_cast<std::byte>(memory.levels[pixel(i)]); });
  }
  picture.hold_next(in.height, in.width);
}

}  // namespace precache::device
