// SPDX-License-Identifier: Apache-2.0
#include "convert/image/transform/resampler.hpp"

#include <algorithm>
#include <cstring>

#include "formats/bytes/checked_math.hpp"

namespace precache {

void Resampler::start(const HorizontalPass& horizontal, const Taps& vertical,
                      const Geometry& geometry, std::uint32_t source_width,
                      const TensorWriter& writer, std::span<std::byte> tensor) {
  horizontal_ = &horizontal;
  vertical_ = &vertical;
  writer_ = &writer;
  tensor_ = tensor;
  geometry_ = geometry;
  next_source_row_ = vertical.begin;
  next_output_ = 0;
  vertical_first_ = geometry.vertical_first();
  ring_rows_ = 1;
  for (const auto& output : vertical.outputs) ring_rows_ = std::max(ring_rows_, output.count);
  row_bytes_ =
      std::size_t{vertical_first_ ? source_width : geometry.horizontal.count} * kPixelBytes;
  ring_stride_ = round_up(row_bytes_, kRowSlack);
  shrink_if_large(ring_);
  ring_.resize(ring_stride_ * ring_rows_ + kRowSlack);
  vertical_row_.resize(ring_stride_ + kRowSlack);
  output_row_.resize(std::size_t{geometry.horizontal.count} * kPixelBytes + kRowSlack);
  tap_rows_.resize(ring_rows_);
}

std::uint8_t* Resampler::ring_row(std::uint32_t source_row) {
  return ring_.data() + source_row % ring_rows_ * ring_stride_;
}

void Resampler::take_row(const std::uint8_t* pixels) {
  std::uint8_t* row = ring_row(next_source_row_);
  if (vertical_first_) {
    std::memcpy(row, pixels, row_bytes_);
  } else {
    horizontal_->run(pixels, row);
  }
  ++next_source_row_;
  emit(next_source_row_);
}

void Resampler::emit(std::uint32_t available) {
  for (; next_output_ < vertical_->outputs.size(); ++next_output_) {
    const Taps::Output& output = vertical_->outputs[next_output_];
    if (output.first + output.count > available) return;
    const std::uint8_t* row = vertical_pass(output);
    if (vertical_first_) {
      horizontal_->run(row, output_row_.data());
      row = output_row_.data();
    }
    writer_->write(tensor_, geometry_.vertical.placed_at + static_cast<std::uint32_t>(next_output_),
                   geometry_.horizontal.placed_at, row, geometry_.horizontal.count);
  }
}

const std::uint8_t* Resampler::vertical_pass(const Taps::Output& output) {
  if (output.count == 0) {
    std::ranges::fill(vertical_row_, std::uint8_t{0});
    return vertical_row_.data();
  }
  if (vertical_->weights.empty()) return ring_row(output.first);
  for (std::uint32_t i = 0; i < output.count; ++i) tap_rows_[i] = ring_row(output.first + i);
  run_vertical_pass(std::span(tap_rows_).first(output.count), &vertical_->weights[output.weights],
                    row_bytes_, vertical_row_.data());
  return vertical_row_.data();
}

}  // namespace precache
