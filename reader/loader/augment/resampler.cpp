// SPDX-License-Identifier: Apache-2.0
#include "reader/loader/augment/resampler.hpp"

#include <algorithm>
#include <cstring>

namespace precache {
namespace {

Filter filter_of(Interpolation interpolation) {
  switch (interpolation) {
    case Interpolation::kNearest:
      return Filter::kNearest;
    case Interpolation::kBicubic:
      return Filter::kBicubic;
    case Interpolation::kBilinear:
      break;
  }
  return Filter::kBilinear;
}

std::size_t padded(std::size_t width) { return (width + kRowSlack - 1) / kRowSlack * kRowSlack; }

/// The number of bytes that the passes read from the start of a window's last row.
std::size_t reach_of(const PlanarWindow& window, const HorizontalTable* horizontal) {
  const std::size_t vertical = padded(window.shape.width);
  return horizontal == nullptr ? vertical : std::max(vertical, horizontal->reach);
}

/// Copies a channel to where reading past its end is allowed.
PlaneRows copied(const PlaneRows& in, std::size_t reach, PlanarImage& memory) {
  const std::size_t stride = in.width;
  // The slack of the image is one vector; the reach may be longer.
  const std::size_t rows_after = reach / stride + 1;
  memory.resize(
      {1, static_cast<std::uint32_t>(in.rows + rows_after), static_cast<std::uint32_t>(in.width)});
  for (std::size_t y = 0; y < in.rows; ++y) {
    std::memcpy(memory.row(0, y), in.first + y * in.stride, in.width);
  }
  return {memory.plane(0), stride, in.rows, in.width};
}

void copy_rows(const PlaneRows& in, std::uint8_t* out) {
  for (std::size_t y = 0; y < in.rows; ++y) {
    std::memcpy(out + y * in.width, in.first + y * in.stride, in.width);
  }
}

}  // namespace

Resampler::Resampler(ImageSize largest_source, ImageSize resized, Interpolation interpolation)
    : resized_(resized),
      interpolation_(interpolation),
      horizontal_(largest_source.width, resized.width, filter_of(interpolation)),
      vertical_(largest_source.height, resized.height, filter_of(interpolation)) {}

void Resampler::run(const PlanarWindow& window, PlanarImage& out, ResampleScratch& scratch) const {
  const ImageShape& shape = window.shape;
  out.resize({shape.channels, resized_.height, resized_.width});
  if (interpolation_ == Interpolation::kNearest) return run_nearest(window, out, scratch);
  const HorizontalTable* const horizontal =
      shape.width == resized_.width ? nullptr : &horizontal_.get(shape.width, scratch.horizontal);
  const VerticalTable* const vertical =
      shape.height == resized_.height ? nullptr : &vertical_.get(shape.height, scratch.vertical);
  const bool vertical_first =
      resizes_vertically_first(shape.height, resized_.height, shape.width, resized_.width);
  const std::size_t reach = reach_of(window, horizontal);
  for (std::uint32_t channel = 0; channel < shape.channels; ++channel) {
    PlaneRows in{window.first + channel * window.channel, window.row, shape.height, shape.width};
    const std::uint8_t* const last = in.first + (in.rows - 1) * in.stride;
    if (static_cast<std::size_t>(window.end - last) < reach) {
      in = copied(in, reach, scratch.window);
    }
    run_plane(in, horizontal, vertical, vertical_first, out.plane(channel), scratch);
  }
}

void Resampler::run_plane(const PlaneRows& in, const HorizontalTable* horizontal,
                          const VerticalTable* vertical, bool vertical_first, std::uint8_t* out,
                          ResampleScratch& scratch) const {
  const bool clamp = interpolation_ == Interpolation::kBicubic;
  if (horizontal == nullptr && vertical == nullptr) return copy_rows(in, out);
  if (horizontal == nullptr) return resample_columns(in, *vertical, clamp, out, resized_.width);
  if (vertical == nullptr) return resample_rows(in, *horizontal, clamp, out, resized_.width);
  const std::size_t between = padded(vertical_first ? in.width : resized_.width) + kRowSlack;
  const std::size_t rows = vertical_first ? resized_.height : in.rows;
  // One row more, for horizontal passes that read past the last one.
  scratch.pass.resize(
      {1, static_cast<std::uint32_t>(rows + 1), static_cast<std::uint32_t>(between)});
  std::uint8_t* const pass = scratch.pass.plane(0);
  if (vertical_first) {
    resample_columns(in, *vertical, clamp, pass, between);
    resample_rows({pass, between, rows, in.width}, *horizontal, clamp, out, resized_.width);
  } else {
    resample_rows(in, *horizontal, clamp, pass, between);
    resample_columns({pass, between, rows, resized_.width}, *vertical, clamp, out, resized_.width);
  }
}

void Resampler::run_nearest(const PlanarWindow& window, PlanarImage& out,
                            ResampleScratch& scratch) const {
  const auto& rows = vertical_.get(window.shape.height, scratch.vertical).rows;
  const auto& columns = horizontal_.get(window.shape.width, scratch.horizontal).taps.outputs;
  // A table entry has more than the place, so each row would read it all again.
  std::vector<std::uint32_t>& places = scratch.places;
  places.resize(columns.size());
  bool has_gaps = false;
  for (std::size_t x = 0; x < columns.size(); ++x) {
    const bool is_gap = columns[x].count == 0;  // its place is after the row
    places[x] = is_gap ? 0 : columns[x].first;
    has_gaps = has_gaps || is_gap;
  }
  for (std::uint32_t channel = 0; channel < window.shape.channels; ++channel) {
    for (std::size_t y = 0; y < rows.size(); ++y) {
      const std::uint8_t* const from =
          window.first + channel * window.channel + rows[y].first * window.row;
      std::uint8_t* const to = out.row(channel, y);
      if (rows[y].count == 0) {
        std::memset(to, 0, columns.size());
        continue;
      }
      const std::uint32_t* const place = places.data();
      for (std::size_t x = 0; x < places.size(); ++x) to[x] = from[place[x]];
      if (!has_gaps) continue;
      for (std::size_t x = 0; x < columns.size(); ++x) {
        if (columns[x].count == 0) to[x] = 0;
      }
    }
  }
}

}  // namespace precache
