// SPDX-License-Identifier: Apache-2.0
#include "convert/image/decode/array_decoder.hpp"

#include <fmt/format.h>

#include <cassert>
#include <cmath>
#include <cstring>
#include <type_traits>

namespace precache {
namespace {

template <typename T>
T load(const std::byte* place) {
  T value;
  std::memcpy(&value, place, sizeof value);  // rows of a file are not aligned
  return value;
}

std::uint8_t brightness(std::uint8_t value, bool) { return value; }
// As for a PNG of 16 bits.
std::uint8_t brightness(std::uint16_t value, bool) { return static_cast<std::uint8_t>(value >> 8); }
std::uint8_t brightness(std::int32_t value, bool) { return static_cast<std::uint8_t>(value); }
std::uint8_t brightness(float value, bool is_unit_range) {
  return static_cast<std::uint8_t>(std::floor(value * (is_unit_range ? 255.0F : 1.0F) + 0.5F));
}

}  // namespace

std::optional<Rejection> ArrayDecoder::open(std::span<const std::byte> file, ImageHeader& header) {
  assert(file.size() == image_.pixels.size_bytes());
  header = {.width = image_.pixels.width, .height = image_.pixels.height};
  array_ = file;
  return std::nullopt;
}

/// Checks that every number is a brightness, even outside the region that a recipe uses.
template <typename T>
std::optional<Rejection> ArrayDecoder::check() const {
  if constexpr (std::is_same_v<T, std::int32_t> || std::is_same_v<T, float>) {
    const T white = std::is_same_v<T, float> && image_.is_unit_range ? T{1} : T{255};
    for (std::size_t at = 0; at < array_.size(); at += sizeof(T)) {
      const T value = load<T>(array_.data() + at);
      if (value >= 0 && value <= white) continue;  // false for NaN
      return Rejection{RejectionStage::kDecode,
                       fmt::format("the value {} is not between 0 and {}", value, white)};
    }
  }
  return std::nullopt;
}

template <typename T>
void ArrayDecoder::hand_over(const Region& region, RowSink& sink) {
  const PixelArray& pixels = image_.pixels;
  const bool hwc = pixels.layout == Layout::kHwc;
  const std::size_t plane = std::size_t{pixels.height} * pixels.width;
  const std::size_t pixel_step = sizeof(T) * (hwc ? pixels.channels : 1);
  const std::size_t channel_step = pixels.channels < 3 ? 0 : sizeof(T) * (hwc ? 1 : plane);
  row_.assign(std::size_t{region.width} * kPixelBytes + kRowSlack, 0xff);
  for (std::uint32_t y = region.y; y < region.y + region.height; ++y) {
    const std::byte* from = array_.data() + (std::size_t{y} * pixels.width + region.x) * pixel_step;
    for (std::size_t x = 0; x < region.width; ++x, from += pixel_step) {
      for (std::size_t channel = 0; channel < 3; ++channel) {
        row_[x * kPixelBytes + channel] =
            brightness(load<T>(from + channel * channel_step), image_.is_unit_range);
      }
    }
    sink.take_row(row_.data());
  }
}

std::optional<Rejection> ArrayDecoder::decode(const Region& region, RowSink& sink) {
  const auto run = [&]<typename T>(T) {
    if (auto rejection = check<T>()) return rejection;
    hand_over<T>(region, sink);
    return std::optional<Rejection>();
  };
  switch (image_.pixels.type) {
    case PixelType::kUint8:
      return run(std::uint8_t{});
    case PixelType::kUint16:
      return run(std::uint16_t{});
    case PixelType::kInt32:
      return run(std::int32_t{});
    case PixelType::kFloat32:
      break;
  }
  return run(float{});
}

}  // namespace precache
