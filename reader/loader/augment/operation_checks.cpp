// SPDX-License-Identifier: Apache-2.0
#include "reader/loader/augment/operation_checks.hpp"

#include <cmath>

#include "reader/loader/augment/blur.hpp"

namespace precache::augment {
namespace {

constexpr double kLargestFactor = 1e6;
constexpr double kFullTurns = 360e3;  // angles for which sine and cosine are exact
constexpr std::uint32_t kMostBins = 1000;
constexpr std::uint32_t kMostOperations = 16;

void check_colors(std::string_view operation, const ImageShape& shape) {
  if (shape.channels == 1 || shape.channels == 3) return;
  throw InvalidArgument(fmt::format("{} needs images of 1 or 3 channels, but they have {}",
                                    operation, shape.channels));
}

void check_warp(std::string_view operation, Interpolation interpolation, const Fill& fill,
                const ImageShape& shape) {
  if (interpolation == Interpolation::kBicubic) {
    throw InvalidArgument(
        fmt::format("{}: `interpolation` must be nearest or bilinear, got bicubic", operation));
  }
  check_fill(operation, fill, shape.channels);
  if (shape.channels <= 4) return;
  throw InvalidArgument(fmt::format("{} needs images of at most 4 channels, but they have {}",
                                    operation, shape.channels));
}

void check_center(std::string_view operation, const std::optional<std::array<double, 2>>& center) {
  if (!center || (std::abs((*center)[0]) <= kLargestSide && std::abs((*center)[1]) <= kLargestSide))
    return;
  throw InvalidArgument(fmt::format("{}: `center` must be within {} pixels, got {}, {}", operation,
                                    kLargestSide, (*center)[0], (*center)[1]));
}

void check_count(std::string_view operation, std::string_view field, std::uint32_t value,
                 std::uint32_t least, std::uint32_t most) {
  if (value >= least && value <= most) return;
  throw InvalidArgument(fmt::format("{}: `{}` must be between {} and {}, got {}", operation, field,
                                    least, most, value));
}

}  // namespace

void check(const RandomRotation& operation, const ImageShape& shape) {
  constexpr const char* kName = "RandomRotation";
  check_range(kName, "degrees", operation.degrees, -kFullTurns, kFullTurns);
  check_center(kName, operation.center);
  check_warp(kName, operation.interpolation, operation.fill, shape);
}

void check(const RandomAffine& operation, const ImageShape& shape) {
  constexpr const char* kName = "RandomAffine";
  check_range(kName, "degrees", operation.degrees, -kFullTurns, kFullTurns);
  if (operation.translate) {
    for (const double part : *operation.translate) {
      if (part >= 0 && part <= 1) continue;
      throw InvalidArgument(
          fmt::format("{}: `translate` must be between 0 and 1, got {}", kName, part));
    }
  }
  if (operation.scale) {
    check_range(kName, "scale", *operation.scale, 0, kLargestFactor, Lowest::kExcluded);
  }
  if (operation.shear) {
    const auto& [x_from, x_to, y_from, y_to] = *operation.shear;
    check_range(kName, "shear", {x_from, x_to}, -kFullTurns, kFullTurns);
    check_range(kName, "shear", {y_from, y_to}, -kFullTurns, kFullTurns);
  }
  check_center(kName, operation.center);
  check_warp(kName, operation.interpolation, operation.fill, shape);
}

void check(const ColorJitter& operation, const ImageShape& shape) {
  constexpr const char* kName = "ColorJitter";
  const auto factor = [&](const char* field, const std::optional<Range>& range) {
    if (range) check_range(kName, field, *range, 0, kLargestFactor);
  };
  factor("brightness", operation.brightness);
  factor("contrast", operation.contrast);
  factor("saturation", operation.saturation);
  if (operation.hue) check_range(kName, "hue", *operation.hue, -0.5, 0.5);
  check_colors(kName, shape);
}

void check(const RandomGrayscale& operation, const ImageShape& shape) {
  check_chance("RandomGrayscale", operation.p);
  check_colors("RandomGrayscale", shape);
}

void check(const RandomErasing& operation, const ImageShape& shape) {
  constexpr const char* kName = "RandomErasing";
  check_chance(kName, operation.p);
  check_range(kName, "scale", operation.scale, 0, 1);
  check_range(kName, "ratio", operation.ratio, 0, kLargestFactor, Lowest::kExcluded);
  if (!operation.random && operation.value.size() != 1 &&
      operation.value.size() != shape.channels) {
    throw InvalidArgument(fmt::format("{}: `value` must have one number or {}, got {}", kName,
                                      shape.channels, operation.value.size()));
  }
  for (const double value : operation.value) {
    if (std::isfinite(value)) continue;
    throw InvalidArgument(fmt::format("{}: `value` must be finite, got {}", kName, value));
  }
}

void check(const GaussianBlur& operation, const ImageShape& shape) {
  constexpr const char* kName = "GaussianBlur";
  for (const std::uint32_t size : operation.kernel_size) {
    check_count(kName, "kernel_size", size, 1, kLargestBlur);
    if (size % 2 == 1) continue;
    throw InvalidArgument(fmt::format("{}: `kernel_size` must be odd, got {}", kName, size));
  }
  if (operation.kernel_size[0] / 2 >= shape.width || operation.kernel_size[1] / 2 >= shape.height) {
    throw InvalidArgument(fmt::format("{}: `kernel_size` {}x{} is too large for images of {}x{}",
                                      kName, operation.kernel_size[0], operation.kernel_size[1],
                                      shape.height, shape.width));
  }
  check_range(kName, "sigma", operation.sigma, 0, kLargestFactor, Lowest::kExcluded);
}

void check(const RandomSolarize& operation, const ImageShape& shape) {
  check_chance("RandomSolarize", operation.p);
  check_colors("RandomSolarize", shape);
  if (std::isfinite(operation.threshold)) return;
  throw InvalidArgument(
      fmt::format("RandomSolarize: `threshold` must be finite, got {}", operation.threshold));
}

void check(const RandomPosterize& operation, const ImageShape& shape) {
  check_chance("RandomPosterize", operation.p);
  check_colors("RandomPosterize", shape);
  check_count("RandomPosterize", "bits", operation.bits, 0, 8);
}

void check(const RandomEqualize& operation, const ImageShape& shape) {
  check_chance("RandomEqualize", operation.p);
  check_colors("RandomEqualize", shape);
}

void check(const RandomAutocontrast& operation, const ImageShape& shape) {
  check_chance("RandomAutocontrast", operation.p);
  check_colors("RandomAutocontrast", shape);
}

void check(const RandomInvert& operation, const ImageShape& shape) {
  check_chance("RandomInvert", operation.p);
  check_colors("RandomInvert", shape);
}

void check(const RandomAdjustSharpness& operation, const ImageShape& shape) {
  constexpr const char* kName = "RandomAdjustSharpness";
  check_chance(kName, operation.p);
  check_colors(kName, shape);
  if (operation.factor >= 0 && operation.factor <= kLargestFactor) return;
  throw InvalidArgument(fmt::format("{}: `factor` must be between 0 and {}, got {}", kName,
                                    kLargestFactor, operation.factor));
}

void check(const TrivialAugmentWide& operation, const ImageShape& shape) {
  constexpr const char* kName = "TrivialAugmentWide";
  check_count(kName, "num_magnitude_bins", operation.num_magnitude_bins, 2, kMostBins);
  check_colors(kName, shape);
  check_warp(kName, operation.interpolation, operation.fill, shape);
}

void check(const RandAugment& operation, const ImageShape& shape) {
  constexpr const char* kName = "RandAugment";
  check_count(kName, "num_magnitude_bins", operation.num_magnitude_bins, 2, kMostBins);
  check_count(kName, "num_ops", operation.num_ops, 0, kMostOperations);
  check_count(kName, "magnitude", operation.magnitude, 0, operation.num_magnitude_bins - 1);
  check_colors(kName, shape);
  check_warp(kName, operation.interpolation, operation.fill, shape);
}

void check(const AutoAugment& operation, const ImageShape& shape) {
  check_colors("AutoAugment", shape);
  check_warp("AutoAugment", operation.interpolation, operation.fill, shape);
}

}  // namespace precache::augment
