// SPDX-License-Identifier: Apache-2.0
#include "reader/loader/augment/colour.hpp"

#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "reader/loader/augment/blend_kernels.hpp"
#include "reader/loader/augment/colour_body.hpp"
#include "reader/loader/augment/colour_kernels.hpp"
#include "reader/loader/augment/level_tables_body.hpp"

namespace precache::augment {
namespace {

using Table = std::array<std::uint8_t, 256>;
using Histogram = std::array<std::uint32_t, 256>;

Planes planes_of(PlanarImage& image) {
  return {image.plane(0), image.plane(1), image.plane(2), image.plane_size()};
}

/// Four histograms, because a byte that follows its like would wait for the counter to be stored.
Histogram histogram_of(const std::uint8_t* bytes, std::size_t size) {
  std::array<Histogram, 4> counts{};
  std::size_t i = 0;
  for (; i + 4 <= size; i += 4) {
    for (std::size_t k = 0; k < 4; ++k) ++counts[k][bytes[i + k]];
  }
  for (; i < size; ++i) ++counts[0][bytes[i]];
  for (std::size_t value = 0; value < 256; ++value) {
    counts[0][value] += counts[1][value] + counts[2][value] + counts[3][value];
  }
  return counts[0];
}

/// The table of `ImageOps.equalize`; false if the image stays as it is.
bool equalizing_table(const Histogram& histogram, Table& table) {
  const std::uint64_t step = equalizing_step(histogram.data());
  if (step == 0) return false;
  std::uint64_t below = step / 2;
  for (std::size_t value = 0; value < 256; ++value) {
    table[value] = equalized(below, step);
    below += histogram[value];
  }
  return true;
}

/// The table of `ImageOps.autocontrast`.
Table stretching_table(Extrema extrema) {
  Table table;
  for (std::uint32_t value = 0; value < 256; ++value) {
    table[value] = stretched(value, extrema.low, extrema.high);
  }
  return table;
}

}  // namespace

void adjust_brightness(PlanarImage& image, double factor) {
  blend_from_grey(image.plane(0), image.size(), 0, static_cast<float>(factor));
}

void adjust_contrast(PlanarImage& image, double factor) {
  const std::size_t size = image.plane_size();
  if (size == 0) return;
  const std::uint64_t sum =
      image.channels() == 3 ? sum_of_luma(planes_of(image)) : sum_of_bytes(image.plane(0), size);
  const double mean = static_cast<double>(sum) / static_cast<double>(size);
  blend_from_grey(image.plane(0), image.size(), static_cast<std::uint8_t>(mean + 0.5),
                  static_cast<float>(factor));
}

void adjust_saturation(PlanarImage& image, double factor) {
  if (image.channels() == 3) blend_from_luma(planes_of(image), static_cast<float>(factor));
}

void adjust_hue(PlanarImage& image, double factor) {
  if (image.channels() != 3) return;
  const auto shift = static_cast<std::int32_t>(factor * 255);
  shift_hue(planes_of(image), static_cast<std::uint8_t>(shift));
}

void adjust_sharpness(PlanarImage& image, PlanarImage& spare, double factor) {
  if (image.height() < 3 || image.width() < 3) return;  // Pillow does not smooth these
  spare.resize(image.shape());
  for (std::uint32_t channel = 0; channel < image.channels(); ++channel) {
    std::memcpy(spare.row(channel, 0), image.row(channel, 0), image.width());
    for (std::uint32_t y = 1; y + 1 < image.height(); ++y) {
      const std::uint8_t* const row = image.row(channel, y);
      std::uint8_t* const out = spare.row(channel, y);
      out[0] = row[0];
      out[image.width() - 1] = row[image.width() - 1];
      smooth_row(row - image.width(), row, row + image.width(), out, image.width());
    }
    std::memcpy(spare.row(channel, image.height() - 1), image.row(channel, image.height() - 1),
                image.width());
  }
  blend_from_image(spare.plane(0), image.plane(0), image.size(), static_cast<float>(factor));
  image.swap(spare);
}

void to_grayscale(PlanarImage& image) {
  if (image.channels() == 3) replace_by_luma(planes_of(image));
}

void invert(PlanarImage& image) { invert_from(image.plane(0), image.size(), 0); }

std::uint32_t solarize_from(double threshold) {
  const double first = std::ceil(threshold);  // a byte is below both or neither
  return first <= 0 ? 0 : first > 255 ? 256 : static_cast<std::uint32_t>(first);
}

std::uint8_t posterize_mask(std::uint32_t bits) {
  return bits >= 8 ? 0xff : static_cast<std::uint8_t>(0xff00U >> bits);
}

void solarize(PlanarImage& image, double threshold) {
  invert_from(image.plane(0), image.size(), solarize_from(threshold));
}

void posterize(PlanarImage& image, std::uint32_t bits) {
  if (bits < 8) keep_bits(image.plane(0), image.size(), posterize_mask(bits));
}

void equalize(PlanarImage& image) {
  for (std::uint32_t channel = 0; channel < image.channels(); ++channel) {
    std::uint8_t* const plane = image.plane(channel);
    Table table;
    if (equalizing_table(histogram_of(plane, image.plane_size()), table)) {
      look_up(plane, image.plane_size(), table);
    }
  }
}

void autocontrast(PlanarImage& image) {
  if (image.plane_size() == 0) return;
  for (std::uint32_t channel = 0; channel < image.channels(); ++channel) {
    std::uint8_t* const plane = image.plane(channel);
    const Extrema extrema = extrema_of(plane, image.plane_size());
    if (extrema.low == extrema.high) continue;
    look_up(plane, image.plane_size(), stretching_table(extrema));
  }
}

}  // namespace precache::augment
