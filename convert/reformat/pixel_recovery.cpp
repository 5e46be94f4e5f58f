// SPDX-License-Identifier: Apache-2.0
#include "convert/reformat/pixel_recovery.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "formats/bytes/half_float.hpp"

namespace precache {
namespace {

std::uint32_t bits_of(float value, DType dtype) {
  switch (dtype) {
    case DType::kFloat16:
      return to_float16(value);
    case DType::kBfloat16:
      return to_bfloat16(value);
    default:
      return std::bit_cast<std::uint32_t>(value);
  }
}

/// The pixel whose value has these bits, or -1. Rounding moved the value by less than the distance
/// of two pixels, so it is the nearest pixel or a neighbour.
int pixel_of(float value, std::uint32_t bits, float mean, float std,
             const std::array<std::uint32_t, 256>& table) {
  const float guess = (value * std + mean) * 255.0F + 0.5F;
  const int nearest = guess >= 255.0F ? 255 : guess > 0 ? static_cast<int>(guess) : 0;  // NaN: 0
  if (table[static_cast<std::size_t>(nearest)] == bits) return nearest;
  for (const int pixel : {nearest - 1, nearest + 1}) {
    if (pixel >= 0 && pixel < 256 && table[static_cast<std::size_t>(pixel)] == bits) return pixel;
  }
  return -1;
}

}  // namespace

PixelRecovery::PixelRecovery(const TensorSpec& stored, const Normalization& rule)
    : stored_(stored) {
  for (std::size_t i = 0; i < channels_.size(); ++i) {
    Channel& channel = channels_[i];
    channel.mean = rule.mean[i];
    channel.std = rule.std[i];
    for (std::size_t pixel = 0; pixel < channel.bits.size(); ++pixel) {
      channel.bits[pixel] = bits_of(rule(static_cast<std::uint8_t>(pixel), i), stored.dtype);
    }
    auto sorted = channel.bits;
    std::ranges::sort(sorted);
    // With one channel, the other entries of the rule are not used.
    const bool is_used = i < stored.channels;
    if (is_used && std::ranges::adjacent_find(sorted) != sorted.end()) is_possible_ = false;
  }
}

template <typename Bits, typename ToFloat>
bool PixelRecovery::recover(std::span<const std::byte> tensor, std::span<std::uint8_t> pixels,
                            const ToFloat& to_float) const {
  const bool interleaved = stored_.layout == Layout::kHwc;
  const std::size_t plane = std::size_t{stored_.height} * stored_.width;
  const std::size_t step = interleaved ? stored_.channels : 1;
  for (std::size_t c = 0; c < stored_.channels; ++c) {
    const Channel& channel = channels_[c % channels_.size()];
    const std::size_t begin = interleaved ? c : c * plane;
    for (std::size_t n = 0; n < plane; ++n) {
      const std::size_t i = begin + n * step;
      Bits bits;
      std::memcpy(&bits, tensor.data() + i * sizeof bits, sizeof bits);
      const int pixel = pixel_of(to_float(bits), bits, channel.mean, channel.std, channel.bits);
      if (pixel < 0) return false;
      pixels[i] = static_cast<std::uint8_t>(pixel);
    }
  }
  return true;
}

bool PixelRecovery::run(std::span<const std::byte> tensor, std::span<std::uint8_t> pixels) const {
  switch (stored_.dtype) {
    case DType::kFloat16:
      return recover<std::uint16_t>(tensor, pixels, from_float16);
    case DType::kBfloat16:
      return recover<std::uint16_t>(tensor, pixels, from_bfloat16);
    default:
      return recover<std::uint32_t>(tensor, pixels,
                                    [](std::uint32_t bits) { return std::bit_cast<float>(bits); });
  }
}

}  // namespace precache
