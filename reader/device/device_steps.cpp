// SPDX-License-Identifier: Apache-2.0
#include "reader/device/device_steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <variant>

#include "precache/formats/error.hpp"
#include "reader/loader/augment/affine_operations.hpp"
#include "reader/loader/augment/colour.hpp"
#include "reader/loader/augment/exponential.hpp"
#include "reader/loader/augment/geometry.hpp"

namespace precache::device {
namespace {

/// Fills the fields that a kind of operation uses.
struct StepFiller {
  const augment::Step& from;
  DeviceStep& step;
  std::vector<double>& values;

  void operator()(const RandomResizedCrop& operation) const {
    step.kind = StepKind::kRandomResizedCrop;
    step.interpolation = operation.interpolation;
    set_ranges(operation.scale, operation.ratio);
  }
  void operator()(const Resize& operation) const {
    step.kind = StepKind::kResize;
    step.interpolation = operation.interpolation;
  }
  void operator()(const CenterCrop& operation) const {
    step.kind = StepKind::kCenterCrop;
    step.part = augment::centre(operation, from.in);
    set_border(augment::border_of(operation, from.in));
  }
  void operator()(const RandomCrop& operation) const {
    step.kind = StepKind::kRandomCrop;
    const augment::Border border = augment::border_of(operation, from.in);
    step.free_rows = from.in.height + border.top + border.bottom - operation.height;
    step.free_columns = from.in.width + border.left + border.right - operation.width;
    set_border(border);
    set_values(operation.fill);
  }
  void operator()(const RandomHorizontalFlip& operation) const {
    step.kind = StepKind::kHorizontalFlip;
    step.p = operation.p;
    step.alternate = operation.alternate;
  }
  void operator()(const RandomVerticalFlip& operation) const {
    step.kind = StepKind::kVerticalFlip;
    step.p = operation.p;
  }
  void operator()(const RandomQuarterTurn&) const { step.kind = StepKind::kQuarterTurn; }
  void operator()(const RandomRotation& operation) const {
    step.kind = StepKind::kRotation;
    std::ranges::copy(operation.degrees, step.affine.degrees);
    set_sampling(operation);
  }
  void operator()(const RandomAffine& operation) const {
    step.kind = StepKind::kAffine;
    step.affine = ranges_of(operation);
    set_sampling(operation);
  }
  void operator()(const ColorJitter& operation) const {
    step.kind = StepKind::kColorJitter;
    const std::optional<Range>* const ranges[] = {&operation.brightness, &operation.contrast,
                                                  &operation.saturation, &operation.hue};
    for (std::size_t i = 0; i < std::size(ranges); ++i) {
      step.jitters[i] = ranges[i]->has_value();
      if (step.jitters[i]) std::ranges::copy(**ranges[i], step.factors[i]);
    }
  }
  void operator()(const RandomGrayscale& operation) const {
    step.kind = StepKind::kGrayscale;
    step.p = operation.p;
  }
  void operator()(const RandomErasing& operation) const {
    step.kind = StepKind::kErasing;
    step.p = operation.p;
    set_ranges(operation.scale, operation.ratio);
    step.is_noise = operation.random;
    step.erases_numbers = operation.after_normalize;
    set_values(operation.value);
  }
  void operator()(const RandomSolarize& operation) const {
    step.kind = StepKind::kSolarize;
    step.p = operation.p;
    step.threshold = augment::solarize_from(operation.threshold);
  }
  void operator()(const RandomInvert& operation) const {
    step.kind = StepKind::kSolarize;
    step.p = operation.p;
    step.threshold = 0;
  }
  void operator()(const RandomPosterize& operation) const {
    step.kind = StepKind::kPosterize;
    step.p = operation.p;
    step.mask = augment::posterize_mask(operation.bits);
  }
  void operator()(const RandomEqualize& operation) const {
    step.kind = StepKind::kEqualize;
    step.p = operation.p;
  }
  void operator()(const RandomAutocontrast& operation) const {
    step.kind = StepKind::kAutocontrast;
    step.p = operation.p;
  }
  void operator()(const RandomAdjustSharpness& operation) const {
    step.kind = StepKind::kSharpness;
    step.p = operation.p;
    step.factor = operation.factor;
  }
  void operator()(const RandomApply& operation) const {
    step.kind = StepKind::kApply;
    step.p = operation.p;
    step.nested = static_cast<std::uint32_t>(from.nested);
  }
  template <typename T>
  void operator()(const T&) const {
    throw Unsupported(fmt::format("{} is not supported on a GPU",
                                  Operation(T(std::get<T>(from.operation))).name()),
                      "Leave it out, or use a Loader and copy its batches.");
  }

 private:
  void set_ranges(const Range& scale, const Range& ratio) const {
    step.ranges = {{scale[0], scale[1]},
                   {ratio[0], ratio[1]},
                   {augment::logarithm_of(ratio[0]), augment::logarithm_of(ratio[1])}};
  }
  template <typename T>
  void set_sampling(const T& operation) const {
    step.interpolation = operation.interpolation;
    step.has_center = operation.center.has_value();
    if (step.has_center) step.center = {(*operation.center)[0], (*operation.center)[1]};
    set_values(operation.fill);
  }
  void set_border(const augment::Border& border) const {
    step.padding_mode = border.mode;
    step.border_top = border.top;
    step.border_left = border.left;
  }
  template <typename Values>
  void set_values(const Values& added) const {
    step.values_at = static_cast<std::uint32_t>(values.size());
    step.values = static_cast<std::uint32_t>(added.size());
    values.insert(values.end(), added.begin(), added.end());
  }
};

void check_size(const ImageShape& shape) {
  const std::uint64_t pixels = std::uint64_t{shape.height} * shape.width;
  if (pixels <= std::numeric_limits<std::uint32_t>::max() / shape.channels) return;
  throw Unsupported(fmt::format("images of {}x{}x{} have too many pixels to be made on a GPU",
                                shape.channels, shape.height, shape.width));
}

}  // namespace

HostSteps device_steps(const std::vector<augment::Step>& steps) {
  HostSteps result;
  for (const augment::Step& from : steps) {
    check_size(from.in);
    check_size(from.out);
    check_size({from.in.channels, from.in.height, from.out.width});
    check_size({from.in.channels, from.out.height, from.in.width});
    DeviceStep& step = result.steps.emplace_back();
    step.key = from.key;
    step.in_height = from.in.height;
    step.in_width = from.in.width;
    step.height = from.out.height;
    step.width = from.out.width;
    step.sees_whole = from.sees_whole;
    std::visit(StepFiller{from, step, result.values}, from.operation);
  }
  return result;
}

}  // namespace precache::device
