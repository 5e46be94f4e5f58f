// SPDX-License-Identifier: Apache-2.0
#include "formats/image/taps.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace precache {
namespace {

double box(double x) { return x > -0.5 && x <= 0.5 ? 1.0 : 0.0; }

double bilinear(double x) {
  x = std::abs(x);
  return x < 1.0 ? 1.0 - x : 0.0;
}

double bicubic(double x) {
  constexpr double kA = -0.5;
  x = std::abs(x);
  if (x < 1.0) return ((kA + 2.0) * x - (kA + 3.0)) * x * x + 1;
  if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * kA;
  return 0.0;
}

double sinc(double x) {
  if (x == 0.0) return 1.0;
  x *= std::numbers::pi;
  return std::sin(x) / x;
}

double lanczos(double x) { return x >= -3.0 && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0; }

struct Kernel {
  double (*weight)(double);
  double support;
};

Kernel kernel_of(Filter filter) {
  switch (filter) {
    case Filter::kBox:
      return {box, 0.5};
    case Filter::kBicubic:
      return {bicubic, 2.0};
    case Filter::kLanczos:
      return {lanczos, 3.0};
    case Filter::kBilinear:
    case Filter::kNearest:
      break;
  }
  return {bilinear, 1.0};
}

void copy_taps(const AxisGeometry& axis, Taps& taps) {
  for (std::uint32_t i = 0; i < axis.count; ++i) taps.outputs.push_back({axis.first + i, 1, 0});
}

// Pillow steps from pixel to pixel by additions; their rounding errors are part of its definition.
void nearest_taps(const AxisGeometry& axis, Taps& taps) {
  const double step = static_cast<double>(axis.source) / axis.resized;
  double at = step * 0.5;
  for (std::uint32_t i = 0; i < axis.first + axis.count; ++i, at += step) {
    if (i < axis.first) continue;
    const auto pixel = static_cast<std::uint32_t>(at);
    taps.outputs.push_back({pixel, pixel < axis.source ? 1U : 0U, 0});
  }
}

std::int32_t fixed_point(double weight) {
  const double scaled = weight * (1 << Taps::kPrecisionBits);
  return static_cast<std::int32_t>(weight < 0 ? scaled - 0.5 : scaled + 0.5);
}

void filter_taps(const AxisGeometry& axis, const Kernel& kernel, Taps& taps) {
  const double scale = static_cast<double>(axis.source) / axis.resized;
  const double filter_scale = std::max(scale, 1.0);
  const double inverse_scale = 1.0 / filter_scale;
  const double support = kernel.support * filter_scale;
  std::vector<double> weights;
  for (std::uint32_t i = axis.first; i < axis.first + axis.count; ++i) {
    const double centre = (i + 0.5) * scale;
    const int first = std::max(0, static_cast<int>(centre - support + 0.5));
    const int end =
        std::min(static_cast<int>(axis.source), static_cast<int>(centre + support + 0.5));
    weights.clear();
    double sum = 0.0;
    for (int x = first; x < end; ++x) {
      weights.push_back(kernel.weight((x - centre + 0.5) * inverse_scale));
      sum += weights.back();
    }
    taps.outputs.push_back({static_cast<std::uint32_t>(first),
                            static_cast<std::uint32_t>(end - first), taps.weights.size()});
    for (const double weight : weights) {
      taps.weights.push_back(fixed_point(sum != 0.0 ? weight / sum : weight));
    }
  }
}

}  // namespace

Taps make_taps(const AxisGeometry& axis, Filter filter) {
  Taps taps;
  taps.outputs.reserve(axis.count);
  if (axis.source == axis.resized) {
    copy_taps(axis, taps);
  } else if (filter == Filter::kNearest) {
    nearest_taps(axis, taps);
  } else {
    filter_taps(axis, kernel_of(filter), taps);
  }
  taps.begin = axis.source;
  for (const auto& output : taps.outputs) {
    if (output.count == 0) continue;
    taps.begin = std::min(taps.begin, output.first);
    taps.end = std::max(taps.end, output.first + output.count);
  }
  taps.begin = std::min(taps.begin, taps.end);
  return taps;
}

}  // namespace precache
