// SPDX-License-Identifier: Apache-2.0
#include "reader/loader/augment/blur.hpp"

#include <array>
#include <cstddef>
#include <cstring>
#include <memory>

#include "reader/loader/augment/blur_kernels.hpp"
#include "reader/loader/augment/exponential.hpp"

namespace precache {
namespace {

constexpr std::size_t kMostWeights = kLargestBlur / 2 + 1;

/// The weights of the middle and of the pixels on one side.
struct Kernel {
  std::array<float, kMostWeights> weights;
  std::size_t count;
  [[nodiscard]] std::ptrdiff_t reach() const { return static_cast<std::ptrdiff_t>(count) - 1; }
  [[nodiscard]] augment::HalfKernel span() const { return {weights.data(), count}; }
};

/// torchvision's kernel, computed with floats as there.
Kernel kernel_of(std::uint32_t size, double sigma) {
  Kernel kernel{.weights = {}, .count = size / 2 + 1};
  const auto deviation = static_cast<float>(sigma);
  double sum = 0;
  for (std::size_t n = 0; n < kernel.count; ++n) {
    const float distance = static_cast<float>(n) / deviation;
    const float exponent = -0.5F * (distance * distance);
    if (exponent < -104) break;  // less than the smallest float
    kernel.weights[n] = static_cast<float>(augment::exponential_of(exponent));
    sum += n == 0 ? kernel.weights[n] : 2.0 * kernel.weights[n];
  }
  for (float& weight : kernel.weights) weight /= static_cast<float>(sum);
  return kernel;
}

/// An index of a line of `size` pixels that is mirrored at its first and last pixel.
/// REQUIRES: -size < index < 2 size - 1.
std::size_t mirrored(std::ptrdiff_t index, std::uint32_t size) {
  if (index < 0) index = -index;
  const auto last = static_cast<std::ptrdiff_t>(size) - 1;
  return static_cast<std::size_t>(index > last ? 2 * last - index : index);
}

/// Fills the `reach` floats before and after a row of floats with mirrored ones.
void mirror_ends(float* row, std::uint32_t width, std::ptrdiff_t reach) {
  const auto size = static_cast<std::ptrdiff_t>(width);
  for (std::ptrdiff_t n = 1; n <= reach; ++n) {
    row[-n] = row[mirrored(-n, width)];
    row[size - 1 + n] = row[mirrored(size - 1 + n, width)];
  }
}

}  // namespace

GaussianBlurDraw choose(const GaussianBlur& operation, OperationRandom& random, const ImageShape&) {
  return {operation.kernel_size, random.uniform(operation.sigma[0], operation.sigma[1])};
}

void apply(const GaussianBlurDraw& draw, PlanarImage& image, PlanarImage& spare) {
  if (image.plane_size() == 0) return;
  const std::uint32_t width = image.width();
  const std::uint32_t height = image.height();
  const bool square = draw.kernel_size[0] == draw.kernel_size[1];
  const Kernel across = kernel_of(draw.kernel_size[1], draw.sigma);
  const Kernel along = square ? across : kernel_of(draw.kernel_size[0], draw.sigma);
  const std::ptrdiff_t down = across.reach();
  const std::ptrdiff_t right = along.reach();
  std::array<const std::uint8_t*, kLargestBlur> rows;
  // The plane, and after it a row of floats with both ends: less than 3 * width, as the reach is
  // less than the width.
  constexpr std::uint32_t kRowBytes = 3 * sizeof(float);
  spare.resize({1, height + kRowBytes, width});
  void* rest = spare.plane(0) + image.plane_size();
  std::size_t rest_bytes = spare.size() - image.plane_size() + PlanarImage::kAlignment;
  auto* const row =
      static_cast<float*>(std::align(alignof(float), kRowBytes * width, rest, rest_bytes)) + right;
  for (std::uint32_t channel = 0; channel < image.channels(); ++channel) {
    std::memcpy(spare.plane(0), image.plane(channel), image.plane_size());
    for (std::uint32_t y = 0; y < height; ++y) {
      for (std::ptrdiff_t n = -down; n <= down; ++n) {
        rows[static_cast<std::size_t>(n + down)] =
            spare.plane(0) + mirrored(static_cast<std::ptrdiff_t>(y) + n, height) * width;
      }
      augment::blur_across_rows(rows.data() + down, across.span(), row, width);
      mirror_ends(row, width, right);
      augment::blur_along_row(row, along.span(), image.row(channel, y), width);
    }
  }
}

DrawnValue shown(const GaussianBlurDraw& draw) { return draw.sigma; }

}  // namespace precache
