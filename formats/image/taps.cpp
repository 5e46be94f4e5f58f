// SPDX-License-Identifier: Apache-2.0
#include "formats/image/taps.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "formats/image/taps_body.hpp"

namespace precache {
namespace {

double box(double x) { return x > -0.5 && x <= 0.5 ? 1.0 : 0.0; }

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
      return {taps::bicubic, 2.0};
    case Filter::kLanczos:
      return {lanczos, 3.0};
    case Filter::kBilinear:
    case Filter::kNearest:
      break;
  }
  return {taps::bilinear, 1.0};
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

void filter_taps(const AxisGeometry& axis, const Kernel& kernel, Taps& taps) {
  const taps::Reach reach = taps::reach_of(axis.source, axis.resized, kernel.support);
  std::vector<double> weights;
  for (std::uint32_t i = axis.first; i < axis.first + axis.count; ++i) {
    const taps::Window window = taps::window_of(reach, axis.source, i);
    weights.clear();
    double sum = 0.0;
    for (int x = window.first; x < window.end; ++x) {
      weights.push_back(kernel.weight(window.at(x, reach)));
      sum += weights.back();
    }
    taps.outputs.push_back({static_cast<std::uint32_t>(window.first),
                            static_cast<std::uint32_t>(window.end - window.first),
                            taps.weights.size()});
    for (const double weight : weights) {
      taps.weights.push_back(taps::fixed_point(sum != 0.0 ? weight / sum : weight));
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
