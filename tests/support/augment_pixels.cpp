// SPDX-License-Identifier: Apache-2.0
// Runs changes of augmentations for the Python tests.
//
// stdin has any number of cases: a line "NAME CHANNELS HEIGHT WIDTH ARGUMENT...", where numbers may
// be hexadecimal, and then the pixels, channel by channel. stdout gets the changed pixels.
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "reader/loader/augment/affine.hpp"
#include "reader/loader/augment/blur.hpp"
#include "reader/loader/augment/colour.hpp"
#include "reader/loader/augment/policies.hpp"

namespace {

using namespace precache;
using namespace precache::augment;
using Arguments = std::vector<double>;
using Change = std::function<void(const Arguments&, PlanarImage&, PlanarImage&)>;

Change with_factor(void (*change)(PlanarImage&, double)) {
  return
      [change](const Arguments& at, PlanarImage& image, PlanarImage&) { change(image, at.at(0)); };
}

Change alone(void (*change)(PlanarImage&)) {
  return [change](const Arguments&, PlanarImage& image, PlanarImage&) { change(image); };
}

/// The arguments from `first` on are 0 or 1 for nearest or bilinear, and the fill.
struct Samples {
  std::vector<std::uint8_t> fill;
  Sampling sampling;
  Samples(const Arguments& at, std::size_t first) {
    for (std::size_t i = first + 1; i < at.size(); ++i) {
      fill.push_back(static_cast<std::uint8_t>(at[i]));
    }
    sampling = {at.at(first) == 0 ? Interpolation::kNearest : Interpolation::kBilinear, fill};
  }
};

/// Three arguments: whether there is a centre, and where.
std::optional<Point> center_at(const Arguments& at, std::size_t first) {
  if (at.at(first) == 0) return std::nullopt;
  return Point{at.at(first + 1), at.at(first + 2)};
}

const std::map<std::string, Change> kChanges{
    {"adjust_brightness", with_factor(adjust_brightness)},
    {"adjust_contrast", with_factor(adjust_contrast)},
    {"adjust_saturation", with_factor(adjust_saturation)},
    {"adjust_hue", with_factor(adjust_hue)},
    {"solarize", with_factor(solarize)},
    {"to_grayscale", alone(to_grayscale)},
    {"invert", alone(invert)},
    {"equalize", alone(equalize)},
    {"autocontrast", alone(autocontrast)},
    {"posterize", [](const Arguments& at, PlanarImage& image,
                     PlanarImage&) { posterize(image, static_cast<std::uint32_t>(at.at(0))); }},
    {"adjust_sharpness", [](const Arguments& at, PlanarImage& image,
                            PlanarImage& spare) { adjust_sharpness(image, spare, at.at(0)); }},
    {"gaussian_blur",
     [](const Arguments& at, PlanarImage& image, PlanarImage& spare) {
       const GaussianBlurDraw draw{
           {static_cast<std::uint32_t>(at.at(0)), static_cast<std::uint32_t>(at.at(1))}, at.at(2)};
       apply(draw, image, spare);
     }},
    {"rotate",
     [](const Arguments& at, PlanarImage& image, PlanarImage& spare) {
       const Samples samples(at, 4);
       rotate(image, spare, at.at(0), center_at(at, 1), samples.sampling);
     }},
    {"affine",
     [](const Arguments& at, PlanarImage& image, PlanarImage& spare) {
       const AffineMap map{.degrees = at.at(0),
                           .translate = {at.at(1), at.at(2)},
                           .scale = at.at(3),
                           .shear = {at.at(4), at.at(5)},
                           .center = center_at(at, 6)};
       const Samples samples(at, 9);
       affine(image, spare, map, samples.sampling);
     }},
    {"policy",
     [](const Arguments& at, PlanarImage& image, PlanarImage& spare) {
       const PolicyStep step{static_cast<PolicyChange>(at.at(0)), at.at(1)};
       const Samples samples(at, 2);
       apply(step, image, spare, samples.sampling);
     }},
};

}  // namespace

int main() {
  PlanarImage image;
  PlanarImage spare;
  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    std::string change;
    ImageShape shape;
    words >> change >> shape.channels >> shape.height >> shape.width;
    Arguments arguments;
    for (std::string word; words >> word;) {
      arguments.push_back(std::strtod(word.c_str(), nullptr));
    }
    image.resize(shape);
    const auto size = static_cast<std::streamsize>(image.size());
    if (!std::cin.read(reinterpret_cast<char*>(image.plane(0)), size)) return 1;
    kChanges.at(change)(arguments, image, spare);
    std::cout.write(reinterpret_cast<const char*>(image.plane(0)), size).flush();
  }
}
