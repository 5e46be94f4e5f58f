// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "reader/device/augment_work.hpp"
#include "reader/device/block.hpp"
#include "reader/device/colour_steps.hpp"
#include "reader/device/picture.hpp"
#include "reader/device/resize_body.hpp"
#include "reader/device/warp_steps.hpp"
#include "reader/loader/augment/erase_body.hpp"
#include "reader/loader/augment/padding_body.hpp"

/// Makes the pictures of a batch, a block for each sample. Tests also run it on the CPU; the
/// pixels equal those of ViewPass bit for bit.
namespace precache::device {

/// The value of a step for a channel.
PRECACHE_HOST_DEVICE inline double value_of(const StepList& list, const DeviceStep& step,
                                            std::uint32_t channel) {
  if (step.values == 0) return 0;
  return list.values[step.values_at + (step.values == 1 ? 0 : channel % step.values)];
}

PRECACHE_HOST_DEVICE inline std::uint8_t fill_of(const StepList& list, const DeviceStep& step,
                                                 std::uint32_t channel) {
  return static_cast<std::uint8_t>(value_of(list, step, channel));
}

/// Erases a rectangle of pixels.
PRECACHE_HOST_DEVICE inline void erase_pixels(const Block& block, Picture& picture,
                                              const StepList& list, const DeviceStep& step,
                                              const StepDraw& draw) {
  const PictureView& in = picture.view;
  const augment::Rectangle& erased = draw.rectangle;
  const bool is_noise = step.is_noise;
  picture.replace(block, in.height, in.width,
                  [&](std::uint32_t c, std::uint32_t y, std::uint32_t x) -> std::uint8_t {
                    const bool is_inside = y >= erased.top && y < erased.top + erased.height &&
                                           x >= erased.left && x < erased.left + erased.width;
                    if (!is_inside) return in.pixel(c, y, x);
                    if (!is_noise) return augment::erased_pixel(value_of(list, step, c));
                    const std::uint64_t element = (std::uint64_t{c} * in.height + y) * in.width + x;
                    return static_cast<std::uint8_t>(augment::noise_bits(draw.noise, element));
                  });
}

/// Runs a colour operation.
PRECACHE_HOST_DEVICE inline void run_colour_step(const Block& block, const DeviceStep& step,
                                                 const StepDraw& draw, Picture& picture) {
  switch (step.kind) {
    case StepKind::kColorJitter:
      return jitter(block, picture, step, draw);
    case StepKind::kGrayscale:
      return to_grayscale(block, picture);
    case StepKind::kSolarize:
      return replace_bytes(block, picture, [&](std::uint8_t byte) {
        return static_cast<std::uint8_t>(byte >= step.threshold ? 255 - byte : byte);
      });
    case StepKind::kPosterize:
      return replace_bytes(block, picture, [&](std::uint8_t byte) {
        return static_cast<std::uint8_t>(byte & step.mask);
      });
    case StepKind::kEqualize:
      return change_levels(block, picture, true);
    case StepKind::kAutocontrast:
      return change_levels(block, picture, false);
    case StepKind::kSharpness:
      return adjust_sharpness(block, picture, static_cast<float>(step.factor));
    default:
      return;
  }
}

/// A rectangle of the picture with the step's border around it.
PRECACHE_HOST_DEVICE inline void crop_padded(const Block& block, Picture& picture,
                                             const StepList& list, const DeviceStep& step,
                                             const augment::Rectangle& rectangle) {
  PictureView& in = picture.view;
  const std::int64_t top = std::int64_t{rectangle.top} - step.border_top;
  const std::int64_t left = std::int64_t{rectangle.left} - step.border_left;
  if (top >= 0 && left >= 0 && top + step.height <= in.height && left + step.width <= in.width) {
    in.crop(top, left, step.height, step.width);
    return;
  }
  picture.replace(
      block, step.height, step.width, [&](std::uint32_t c, std::uint32_t y, std::uint32_t x) {
        const std::int64_t row = augment::padded_source(top + y, in.height, step.padding_mode);
        const std::int64_t column = augment::padded_source(left + x, in.width, step.padding_mode);
        if (row < 0 || column < 0) return fill_of(list, step, c);
        return in.pixel(c, row, column);
      });
}

PRECACHE_HOST_DEVICE inline void run_step(const PictureWork& work, const Block& block,
                                          const DeviceStep& step, const StepDraw& draw,
                                          std::byte* scratch, Picture& picture) {
  switch (step.kind) {
    case StepKind::kRandomResizedCrop:
    case StepKind::kResize: {
      const augment::Rectangle& part = draw.rectangle;
      picture.view.crop(part.top, part.left, part.height, part.width);
      resize(block, picture, step, scratch + work.scratch.pass_at,
             reinterpret_cast<std::int32_t*>(scratch + work.scratch.taps_at));
      break;
    }
    case StepKind::kCenterCrop:
    case StepKind::kRandomCrop:
      crop_padded(block, picture, work.list, step, draw.rectangle);
      break;
    case StepKind::kHorizontalFlip:
      picture.view.flip();
      break;
    case StepKind::kVerticalFlip:
      picture.view.flip_vertically();
      break;
    case StepKind::kQuarterTurn:
      for (std::uint32_t i = 0; i < draw.turns; ++i) picture.view.turn();
      break;
    case StepKind::kRotation:
    case StepKind::kAffine:
      if (draw.is_turn) {
        for (std::uint32_t i = 0; i < draw.turns; ++i) picture.view.turn();
      } else {
        const auto fill = [&](std::uint32_t c) { return fill_of(work.list, step, c); };
        warp(block, picture, step, draw.matrix, fill,
             reinterpret_cast<std::int32_t*>(scratch + work.scratch.taps_at));
      }
      break;
    case StepKind::kErasing:
      if (!step.erases_numbers) erase_pixels(block, picture, work.list, step, draw);
      break;
    default:
      run_colour_step(block, step, draw, picture);
      break;
  }
}

/// Copies the finished picture to its place in the batch.
template <typename Element>
PRECACHE_HOST_DEVICE inline void write_picture(const PictureWork& work, const Block& block,
                                               const Picture& picture, std::uint32_t row) {
  const PictureView& view = picture.view;
  const std::uint32_t plane = work.height * work.width;
  const std::uint32_t count = work.channels * plane;
  Element* const to = reinterpret_cast<Element*>(work.out) + std::uint64_t{row} * count;
  block.each(count, [&](std::uint32_t i) {
    const std::uint32_t c = i / plane;
    const std::uint32_t y = (i - c * plane) / work.width;
    const std::uint32_t x = i - c * plane - y * work.width;
    to[i] = *reinterpret_cast<const Element*>(view.at(c, y, x));
  });
}

PRECACHE_HOST_DEVICE inline PictureView stored_view(const PictureWork& work, std::uint32_t row) {
  const std::uint64_t number = work.rows == nullptr ? row : work.rows[row];
  const std::int64_t element = work.element_bytes;
  const std::int64_t pixels = std::int64_t{work.in_height} * work.in_width;
  const std::byte* const first = work.in + number * (work.channels * pixels * element);
  if (work.in_hwc) {
    const std::int64_t pixel = work.channels * element;
    return {first, work.in_width * pixel, pixel, element, work.in_height, work.in_width};
  }
  return {first, work.in_width * element, element, pixels * element, work.in_height, work.in_width};
}

/// Makes the picture of one row of the batch in the scratch of `place`.
PRECACHE_HOST_DEVICE inline void make_picture(const PictureWork& work, const Block& block,
                                              std::uint32_t row, std::uint32_t place) {
  std::byte* const scratch = work.scratch.first + place * work.scratch.block_bytes;
  Picture picture{stored_view(work, row), work.channels, scratch, scratch + work.scratch.second_at};
  const StepDraw* const draws = work.draws + std::uint64_t{row} * work.list.count;
  for (std::uint32_t i = 0; i < work.list.count; ++i) {
    if (draws[i].applied) run_step(work, block, work.list.steps[i], draws[i], scratch, picture);
  }
  if (work.element_bytes == 1) {
    write_picture<std::uint8_t>(work, block, picture, row);
  } else if (work.element_bytes == 2) {
    write_picture<std::uint16_t>(work, block, picture, row);
  } else {
    write_picture<std::uint32_t>(work, block, picture, row);
  }
}

}  // namespace precache::device
