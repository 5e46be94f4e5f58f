// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "precache/reader/augmentation.hpp"
#include "reader/loader/augment/affine.hpp"
#include "reader/loader/augment/operation_random.hpp"
#include "reader/loader/augment/planar_image.hpp"

/// TrivialAugmentWide, RandAugment and AutoAugment, with torchvision's tables.
namespace precache {

/// The changes that policies choose from, in torchvision's order.
enum class PolicyChange : std::uint8_t {
  kIdentity,
  kShearX,
  kShearY,
  kTranslateX,
  kTranslateY,
  kRotate,
  kBrightness,
  kColor,
  kContrast,
  kSharpness,
  kPosterize,
  kSolarize,
  kAutoContrast,
  kEqualize,
  kInvert,
};

/// torchvision's name, such as "ShearX".
[[nodiscard]] std::string_view name_of(PolicyChange change);

/// A change and its magnitude: the arguments of torchvision's `_apply_op`.
struct PolicyStep {
  PolicyChange change = PolicyChange::kIdentity;
  double magnitude = 0;
};

/// The most changes of a sample; RandAugment refuses more.
constexpr std::size_t kMostPolicySteps = 16;

/// The choice of a policy; borrows the fill of its operation.
struct PolicyDraw {
  std::array<PolicyStep, kMostPolicySteps> steps{};
  std::size_t count = 0;
  bool one = false;  // always one step, so that it is shown without a list
  augment::Sampling sampling{};
};

/// REQUIRES: num_magnitude_bins is at least 2, and so for the following.
[[nodiscard]] PolicyDraw choose(const TrivialAugmentWide& operation, OperationRandom& random,
                                const ImageShape& shape);
/// REQUIRES: magnitude < num_magnitude_bins, and num_ops <= kMostPolicySteps.
[[nodiscard]] PolicyDraw choose(const RandAugment& operation, OperationRandom& random,
                                const ImageShape& shape);
[[nodiscard]] PolicyDraw choose(const AutoAugment& operation, OperationRandom& random,
                                const ImageShape& shape);

void apply(const PolicyDraw& draw, PlanarImage& image, PlanarImage& spare);
/// The same for a mask: only the changes that move pixels.
void apply_to_mask(const PolicyDraw& draw, PlanarImage& mask, PlanarImage& spare);
/// torchvision's `_apply_op`.
void apply(const PolicyStep& step, PlanarImage& image, PlanarImage& spare,
           const augment::Sampling& sampling);

/// (name, magnitude) of TrivialAugmentWide; of the others a tuple of such pairs.
[[nodiscard]] DrawnValue shown(const PolicyDraw& draw);

}  // namespace precache
