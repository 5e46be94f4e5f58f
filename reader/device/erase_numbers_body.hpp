// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "formats/bytes/half_float.hpp"
#include "reader/device/augment_body.hpp"

/// RandomErasing with `after_normalize`: the numbers of finished tensors. Tests also run it on the
/// CPU; the numbers equal those of erase_numbers() bit for bit.
namespace precache::device {

PRECACHE_HOST_DEVICE inline void put_number(std::byte* tensor, std::uint64_t element, DType type,
                                            float number) {
  if (type == DType::kFloat32) {
    reinterpret_cast<std::uint32_t*>(tensor)[element] = bits_of(number);
  } else {
    reinterpret_cast<std::uint16_t*>(tensor)[element] =
        type == DType::kFloat16 ? to_float16(number) : to_bfloat16(number);
  }
}

/// The rectangles of one row of the batch.
PRECACHE_HOST_DEVICE inline void erase_row(const EraseWork& work, const Block& block,
                                           std::uint32_t row) {
  const std::uint64_t plane = std::uint64_t{work.height} * work.width;
  const std::uint32_t number_bytes = work.type == DType::kFloat32 ? 4 : 2;
  std::byte* const tensor = work.tensors + row * work.channels * plane * number_bytes;
  const StepDraw* const draws = work.draws + std::uint64_t{row} * work.list.count;
  for (std::uint32_t i = 0; i < work.list.count; ++i) {
    const DeviceStep& step = work.list.steps[i];
    if (!step.erases_numbers || !draws[i].applied) continue;
    const augment::Rectangle& erased = draws[i].rectangle;
    const std::uint64_t noise = draws[i].noise;
    block.each(erased.height * erased.width, [&](std::uint32_t at) {
      const std::uint32_t down = at / erased.width;
      const std::uint32_t y = erased.top + down;
      const std::uint32_t x = erased.left + (at - down * erased.width);
      const std::uint64_t pixel = std::uint64_t{y} * work.width + x;
      for (std::uint32_t c = 0; c < work.channels; ++c) {
        const std::uint64_t element = work.hwc ? pixel * work.channels + c : c * plane + pixel;
        const float number = step.is_noise ? augment::normal_noise(noise, c * plane + pixel)
                                           : static_cast<float>(value_of(work.list, step, c));
        put_number(tensor, element, work.type, number);
      }
    });
  }
}

}  // namespace precache::device
