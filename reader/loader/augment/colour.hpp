// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "reader/loader/augment/planar_image.hpp"

/// The colour operations of torchvision's `functional`, in place, with the pixels of its path
/// through Pillow 13. They accept any number of channels; what depends on colours (saturation, hue,
/// grey) changes only images with three. Thread-safe: they use nothing but their arguments.
namespace precache::augment {

void adjust_brightness(PlanarImage& image, double factor);
void adjust_contrast(PlanarImage& image, double factor);
void adjust_saturation(PlanarImage& image, double factor);
/// REQUIRES: -0.5 <= factor <= 0.5.
void adjust_hue(PlanarImage& image, double factor);
/// Needs `spare` for the smoothed image; its content is lost.
void adjust_sharpness(PlanarImage& image, PlanarImage& spare, double factor);
void to_grayscale(PlanarImage& image);
void invert(PlanarImage& image);
/// Inverts what is not below `threshold`.
void solarize(PlanarImage& image, double threshold);
/// Keeps the highest `bits` bits, at most 8; 0 makes all black.
void posterize(PlanarImage& image, std::uint32_t bits);
/// The first byte that solarize() inverts, at most 256, and the bits that posterize() keeps.
[[nodiscard]] std::uint32_t solarize_from(double threshold);
[[nodiscard]] std::uint8_t posterize_mask(std::uint32_t bits);
void equalize(PlanarImage& image);
void autocontrast(PlanarImage& image);

}  // namespace precache::augment
