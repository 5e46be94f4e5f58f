// SPDX-License-Identifier: Apache-2.0
#include "reader/loader/augment/policies.hpp"

#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "reader/loader/augment/angles.hpp"
#include "reader/loader/augment/colour.hpp"
#include "reader/loader/augment/policy_tables.hpp"

namespace precache {
namespace {

using enum PolicyChange;

/// TrivialAugmentWide and RandAugment choose from all changes before kInvert.
constexpr std::uint64_t kRandomChanges = 14;

bool has_magnitude(PolicyChange change) { return change >= kShearX && change <= kSolarize; }

/// The differences between the spaces of the policies.
struct Space {
  double shear;
  double translate_x;
  double translate_y;
  double degrees;
  double enhance;
  int lost_bits;
};

Space learned_space(const ImageShape& shape) {
  return {.shear = 0.3,
          .translate_x = 150.0 / 331.0 * shape.width,
          .translate_y = 150.0 / 331.0 * shape.height,
          .degrees = 30,
          .enhance = 0.9,
          .lost_bits = 4};
}

constexpr Space kWideSpace{.shear = 0.99,
                           .translate_x = 32,
                           .translate_y = 32,
                           .degrees = 135,
                           .enhance = 0.99,
                           .lost_bits = 6};

/// Number `index` of `count` from 0 to `end`, as `torch.linspace` computes them: with one rounding,
/// and from the nearer end.
double spaced(double begin, double end, std::uint32_t index, std::uint32_t count) {
  const auto first = static_cast<float>(begin);
  const auto last = static_cast<float>(end);
  const float step = (last - first) / static_cast<float>(count - 1);
  const double exact = index < count / 2 ? double{first} + double{step} * index
                                         : double{last} - double{step} * (count - 1 - index);
  return static_cast<float>(exact);
}

double magnitude_of(PolicyChange change, const Space& space, std::uint32_t index,
                    std::uint32_t count) {
  switch (change) {
    case kShearX:
    case kShearY:
      return spaced(0, space.shear, index, count);
    case kTranslateX:
      return spaced(0, space.translate_x, index, count);
    case kTranslateY:
      return spaced(0, space.translate_y, index, count);
    case kRotate:
      return spaced(0, space.degrees, index, count);
    case kBrightness:
    case kColor:
    case kContrast:
    case kSharpness:
      return spaced(0, space.enhance, index, count);
    case kPosterize: {
      const auto per_bit = static_cast<float>((count - 1) / static_cast<double>(space.lost_bits));
      return 8 - std::nearbyint(static_cast<float>(index) / per_bit);
    }
    case kSolarize:
      return spaced(255, 0, index, count);
    default:
      return 0;
  }
}

bool moves_pixels(PolicyChange change) { return change >= kShearX && change <= kRotate; }

bool is_signed(PolicyChange change) { return change >= kShearX && change <= kSharpness; }

PolicyDraw empty_draw(Interpolation interpolation, const Fill& fill) {
  return {.sampling = {interpolation, fill}};
}

PolicyStep random_step(OperationRandom& random, const Space& space, std::uint32_t index,
                       std::uint32_t count, PolicyChange change) {
  PolicyStep step{change, 0};
  if (has_magnitude(change)) step.magnitude = magnitude_of(change, space, index, count);
  if (is_signed(change) && random.below(2) == 1) step.magnitude = -step.magnitude;
  return step;
}

PolicyChange random_change(OperationRandom& random) {
  return static_cast<PolicyChange>(random.below(kRandomChanges));
}

}  // namespace

std::string_view name_of(PolicyChange change) {
  constexpr std::array<std::string_view, 15> kChangeNames{
      "Identity",  "ShearX",     "ShearY",       "TranslateX", "TranslateY",
      "Rotate",    "Brightness", "Color",        "Contrast",   "Sharpness",
      "Posterize", "Solarize",   "AutoContrast", "Equalize",   "Invert"};
  return kChangeNames[static_cast<std::size_t>(change)];
}

PolicyDraw choose(const TrivialAugmentWide& operation, OperationRandom& random, const ImageShape&) {
  PolicyDraw draw = empty_draw(operation.interpolation, operation.fill);
  draw.one = true;
  draw.count = 1;
  const PolicyChange change = random_change(random);
  const auto index = static_cast<std::uint32_t>(random.below(operation.num_magnitude_bins));
  draw.steps[0] = random_step(random, kWideSpace, index, operation.num_magnitude_bins, change);
  return draw;
}

PolicyDraw choose(const RandAugment& operation, OperationRandom& random, const ImageShape& shape) {
  PolicyDraw draw = empty_draw(operation.interpolation, operation.fill);
  const Space space = learned_space(shape);
  for (; draw.count < operation.num_ops && draw.count < kMostPolicySteps; ++draw.count) {
    const PolicyChange change = random_change(random);
    draw.steps[draw.count] =
        random_step(random, space, operation.magnitude, operation.num_magnitude_bins, change);
  }
  return draw;
}

PolicyDraw choose(const AutoAugment& operation, OperationRandom& random, const ImageShape& shape) {
  constexpr std::uint32_t kLevels = 10;
  PolicyDraw draw = empty_draw(operation.interpolation, operation.fill);
  const Space space = learned_space(shape);
  const LearnedPolicy& policy = learned_policy(operation.policy);
  for (const LearnedStep& learned : policy[random.below(policy.size())]) {
    const bool applied = random.uniform() <= learned.p;
    const PolicyStep step = random_step(random, space, learned.magnitude, kLevels, learned.change);
    if (applied) draw.steps[draw.count++] = step;
  }
  return draw;
}

void apply(const PolicyStep& step, PlanarImage& image, PlanarImage& spare,
           const augment::Sampling& sampling) {
  using namespace augment;
  const double magnitude = step.magnitude;
  const auto shear_degrees = [&] { return arc_tangent(magnitude) * (180.0 / std::numbers::pi); };
  switch (step.change) {
    case kIdentity:
      return;
    case kShearX:
      return affine(image, spare, {.shear = {shear_degrees(), 0}, .center = Point{}}, sampling);
    case kShearY:
      return affine(image, spare, {.shear = {0, shear_degrees()}, .center = Point{}}, sampling);
    case kTranslateX:
      return affine(image, spare, {.translate = {std::trunc(magnitude), 0}}, sampling);
    case kTranslateY:
      return affine(image, spare, {.translate = {0, std::trunc(magnitude)}}, sampling);
    case kRotate:
      return rotate(image, spare, magnitude, std::nullopt, sampling);
    case kBrightness:
      return adjust_brightness(image, 1.0 + magnitude);
    case kColor:
      return adjust_saturation(image, 1.0 + magnitude);
    case kContrast:
      return adjust_contrast(image, 1.0 + magnitude);
    case kSharpness:
      return adjust_sharpness(image, spare, 1.0 + magnitude);
    case kPosterize:
      return posterize(image, static_cast<std::uint32_t>(magnitude));
    case kSolarize:
      return solarize(image, magnitude);
    case kAutoContrast:
      return autocontrast(image);
    case kEqualize:
      return equalize(image);
    case kInvert:
      return invert(image);
  }
}

void apply(const PolicyDraw& draw, PlanarImage& image, PlanarImage& spare) {
  for (std::size_t i = 0; i < draw.count; ++i) apply(draw.steps[i], image, spare, draw.sampling);
}

void apply_to_mask(const PolicyDraw& draw, PlanarImage& mask, PlanarImage& spare) {
  for (std::size_t i = 0; i < draw.count; ++i) {
    if (moves_pixels(draw.steps[i].change)) apply(draw.steps[i], mask, spare, draw.sampling);
  }
}

DrawnValue shown(const PolicyDraw& draw) {
  std::vector<DrawnValue> steps;
  for (std::size_t i = 0; i < draw.count; ++i) {
    steps.push_back(std::vector<DrawnValue>{std::string(name_of(draw.steps[i].change)),
                                            draw.steps[i].magnitude});
  }
  if (draw.one) return std::move(steps[0]);
  return steps;
}

}  // namespace precache
