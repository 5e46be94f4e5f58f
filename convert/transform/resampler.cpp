// SPDX-License-Identifier: Apache-2.0
#include "convert/transform/resampler.hpp"

#include <algorithm>

#include "formats/base/checked.hpp"

namespace precache {

void Resampler::start(const HorizontalPass& horizontal, const Taps& vertical, const Geometry& geometry,
                      const TensorWriter& writer, std::span<std::byte> tensor) {
  horizontal_ = &horizontal;
  vertical_ = &vertical;
  writer_ = &writer;
  tensor_ = tensor;
  geometry_ = geometry;
  next_source_row_ = vertical.begin;
  next_output_ = 0;
  ring_rows_ = 1;
  for (const auto& output : vertical.outputs) ring_rows_ = std::max(ring_rows_, output.count);
  row_bytes_ = round_up(std::size_t{geometry.horizontal.count} * kPixelBytes, kRowSlack);
  ring_.resize(row_bytes_ * ring_rows_ + kRowSlack);
  output_row_.resize(row_bytes_ + kRowSlack);
  tap_rows_.resize(ring_rows_);
}

std::uint8_t* Resampler::ring_row(std::uint32_t source_row) {
  return ring_.data() + source_row % ring_rows_ * row_bytes_;
}

void Resampler::take_row(const std::uint8_t* pixels) {
  horizontal_->run(pixels, ring_row(next_source_row_));
  ++next_source_row_;
  emit(next_source_row_);
}

void Resampler::emit(std::uint32_t available) {
  for (; next_output_ < vertical_->outputs.size(); ++next_output_) {
    const Taps::Output& output = vertical_->outputs[next_output_];
    if (output.first + output.count > available) return;
    const std::uint8_t* row = ring_row(output.first);
    if (output.count == 0) {
      std::ranges::fill(output_row_, std::uint8_t{0});
      row = output_row_.data();
    } else if (!vertical_->weights.empty()) {
      for (std::uint32_t i = 0; i < output.count; ++i) tap_rows_[i] = ring_row(output.first + i);
      run_vertical_pass(std::span(tap_rows_).first(output.count), &vertical_->weights[output.weights],
                        std::size_t{geometry_.horizontal.count} * kPixelBytes, output_row_.data());
      row = output_row_.data();
    }
    writer_->write(tensor_, geometry_.vertical.placed_at + static_cast<std::uint32_t>(next_output_),
                   geometry_.horizontal.placed_at, row, geometry_.horizontal.count);
  }
}

}  // namespace precache
