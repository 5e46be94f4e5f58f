// SPDX-License-Identifier: Apache-2.0
#include "reader/loader/augment/canvas.hpp"

#include <array>

namespace precache::augment {

Canvas::Canvas(std::span<const std::byte> tensor, const TensorSpec& stored, CanvasMemory& memory)
    : memory_(memory),
      first_(tensor.data()),
      type_(stored.dtype),
      shape_{stored.channels, stored.height, stored.width},
      end_(tensor.data() + tensor.size()) {
  if (stored.layout == Layout::kHwc) {
    side_ = {std::size_t{stored.width} * stored.channels, 1};
  } else {
    side_ = {stored.width, std::size_t{stored.height} * stored.width};
  }
}

std::size_t Canvas::offset(const Rectangle& rectangle) const {
  // A mirrored picture is still stored as it was.
  const std::uint32_t left =
      flipped_ ? shape_.width - rectangle.left - rectangle.width : rectangle.left;
  const std::size_t pixel = side_.channel == 1 ? shape_.channels : 1;
  return (rectangle.top * side_.row + left * pixel) * size_bytes(type_);
}

void Canvas::crop(const Rectangle& rectangle) {
  if (rectangle == Rectangle{0, 0, shape_.height, shape_.width}) return;
  first_ += offset(rectangle);
  shape_.height = rectangle.height;
  shape_.width = rectangle.width;
  is_image_ = false;
}

void Canvas::crop(const Rectangle& rectangle, const Border& border) {
  if (is_inside(rectangle, border, shape_)) {
    return crop(Rectangle{rectangle.top - border.top, rectangle.left - border.left,
                          rectangle.height, rectangle.width});
  }
  if (flipped_ || is_interleaved()) settle();
  crop_padded(window(), border, rectangle, memory_.spare);
  memory_.image.swap(memory_.spare);
  hold_image();
}

void Canvas::resample(const Resampler& resampler) {
  if (flipped_ || is_interleaved()) settle();
  resampler.run(window(), memory_.spare, memory_.resample);
  memory_.image.swap(memory_.spare);
  hold_image();
}

PlanarWindow Canvas::window() const {
  const auto* const first = reinterpret_cast<const std::uint8_t*>(first_);
  // A single channel has no next one.
  const std::size_t channel = shape_.channels == 1 ? 0 : side_.channel;
  return {first, side_.row, channel, shape_, reinterpret_cast<const std::uint8_t*>(end_)};
}

void Canvas::set_source(PixelJob& job) const {
  job.in = first_;
  job.in_side = side_;
  job.in_type = type_;
  job.channels = shape_.channels;
  job.height = shape_.height;
  job.width = shape_.width;
  job.flip = flipped_;
}

/// Copies the remembered rectangle to memory_.image, mirrored if it has to be.
void Canvas::settle() {
  if (is_image_ && !flipped_) return;
  PlanarImage& target = memory_.spare;
  target.resize(shape_);
  static constexpr std::array<ChannelRule, 3> kNoRules{};
  PixelJob job;
  set_source(job);
  job.rules = &kNoRules;
  job.out = reinterpret_cast<std::byte*>(target.plane(0));
  job.out_side = {shape_.width, target.plane_size()};
  job.out_type = type_;
  run_pixels(job);
  memory_.image.swap(target);
  flipped_ = false;
  hold_image();
}

void Canvas::hold_image() {
  PlanarImage& image = memory_.image;
  first_ = reinterpret_cast<const std::byte*>(image.plane(0));
  side_ = {image.width(), image.plane_size()};
  shape_ = image.shape();
  end_ = first_ + image.size() + PlanarImage::kAlignment;
  flipped_ = false;
  is_image_ = true;
}

}  // namespace precache::augment
