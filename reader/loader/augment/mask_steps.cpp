// SPDX-License-Identifier: Apache-2.0
#include "reader/loader/augment/mask_steps.hpp"

#include <fmt/format.h>

#include <memory>
#include <type_traits>
#include <utility>

#include "precache/formats/error.hpp"

namespace precache::augment {
namespace {

template <typename T, typename... Others>
constexpr bool kIsOneOf = (std::is_same_v<T, Others> || ...);

/// Makes the operation of one step that of the mask. False if it does not move pixels.
class MaskStep {
 public:
  MaskStep(Step& step, std::optional<std::uint8_t> fill) : step_(step), fill_(fill) {}

  template <typename T>
  bool operator()(T& operation) const {
    if constexpr (kIsOneOf<T, RandomResizedCrop, Resize>) {
      operation.interpolation = Interpolation::kNearest;
      step_.resampler = std::make_unique<Resampler>(ImageSize{step_.in.height, step_.in.width},
                                                    ImageSize{step_.out.height, step_.out.width},
                                                    Interpolation::kNearest);
    } else if constexpr (kIsOneOf<T, RandomRotation, RandomAffine, TrivialAugmentWide, RandAugment,
                                  AutoAugment>) {
      operation.interpolation = Interpolation::kNearest;
      set(operation.fill);
    } else if constexpr (std::is_same_v<T, RandomCrop>) {
      set(operation.fill);
    } else if constexpr (std::is_same_v<T, CenterCrop>) {
      set(step_.mask_fill);
    }
    return kIsOneOf<T, RandomResizedCrop, Resize, CenterCrop, RandomCrop, RandomHorizontalFlip,
                    RandomVerticalFlip, RandomQuarterTurn, RandomRotation, RandomAffine,
                    TrivialAugmentWide, RandAugment, AutoAugment>;
  }

 private:
  void set(Fill& fill) const {
    if (fill_) fill = {*fill_};
    if (fill.size() <= 1) return;
    throw InvalidArgument(
        fmt::format("{}: `fill` must have one value for images with a mask, got {}", step_.label,
                    fill.size()),
        "The mask is filled with the same value; set `mask_fill` to fill it with another one.");
  }

  Step& step_;
  std::optional<std::uint8_t> fill_;
};

void add_mask_steps(std::vector<Step>& from, std::size_t begin, std::size_t end,
                    std::optional<std::uint8_t> fill, std::vector<Step>& to) {
  for (std::size_t i = begin; i < end; ++i) {
    Step& step = from[i];
    step.in.channels = step.out.channels = 1;
    step.is_of_mask = true;
    if (!std::holds_alternative<RandomApply>(step.operation)) {
      if (std::visit(MaskStep(step, fill), step.operation)) to.push_back(std::move(step));
      continue;
    }
    const std::size_t nested = step.nested;
    const std::size_t at = to.size();
    to.push_back(std::move(step));
    add_mask_steps(from, i + 1, i + 1 + nested, fill, to);
    to[at].nested = to.size() - at - 1;
    if (to[at].nested == 0) to.pop_back();
    i += nested;
  }
}

}  // namespace

std::vector<Step> mask_steps(std::vector<Step> image_steps, std::optional<std::uint8_t> fill) {
  std::vector<Step> steps;
  add_mask_steps(image_steps, 0, image_steps.size(), fill, steps);
  return steps;
}

}  // namespace precache::augment
