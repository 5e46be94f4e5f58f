// SPDX-License-Identifier: Apache-2.0
#include "reader/loader/augment/operation_list.hpp"

#include <fmt/format.h>

#include <array>
#include <map>
#include <type_traits>

#include "precache/formats/error.hpp"
#include "reader/loader/augment/geometry.hpp"
#include "reader/loader/augment/operation_checks.hpp"

namespace precache {
namespace {

// In the order of Operation::Kind.
constexpr std::array<std::string_view, std::variant_size_v<Operation::Kind>> kNames{
    "RandomResizedCrop",
    "Resize",
    "CenterCrop",
    "RandomCrop",
    "RandomHorizontalFlip",
    "RandomVerticalFlip",
    "RandomQuarterTurn",
    "RandomRotation",
    "RandomAffine",
    "ColorJitter",
    "RandomGrayscale",
    "RandomErasing",
    "GaussianBlur",
    "RandomSolarize",
    "RandomPosterize",
    "RandomEqualize",
    "RandomAutocontrast",
    "RandomInvert",
    "RandomAdjustSharpness",
    "TrivialAugmentWide",
    "RandAugment",
    "AutoAugment",
    "RandomApply"};

}  // namespace

std::string_view Operation::name() const { return kNames[kind.index()]; }

namespace augment {
namespace {

constexpr std::size_t kMostSteps = 1000;  // so that nested lists end

template <typename T>
constexpr bool kSetsSize = std::is_same_v<T, RandomResizedCrop> || std::is_same_v<T, Resize> ||
                           std::is_same_v<T, CenterCrop> || std::is_same_v<T, RandomCrop>;
template <typename T>
constexpr bool kResamples = std::is_same_v<T, RandomResizedCrop> || std::is_same_v<T, Resize>;

/// Whether an operation only chooses pixels, and so can also be made with floats.
bool moves_pixels(const Operation::Kind& operation, const ImageShape& in) {
  if (std::holds_alternative<RandomHorizontalFlip>(operation)) return true;
  if (const auto* const crop = std::get_if<CenterCrop>(&operation)) {
    return crop->height <= in.height && crop->width <= in.width;
  }
  const auto* const crop = std::get_if<RandomCrop>(&operation);
  if (crop == nullptr) return false;
  const Border border = border_of(*crop, in);
  return border.left == 0 && border.top == 0 && border.right == 0 && border.bottom == 0;
}

/// Whether the result shows all of the image, and nothing else.
template <typename T>
bool keeps_whole(const T& operation, const ImageShape& in, const ImageSize& size) {
  if constexpr (std::is_same_v<T, Resize>) {
    return true;
  } else if constexpr (std::is_same_v<T, RandomResizedCrop>) {
    return false;
  } else {
    return moves_pixels(operation, in) && size == ImageSize{in.height, in.width};
  }
}

class StepMaker {
 public:
  explicit StepMaker(const TensorSpec& stored) : stored_(stored) {}

  void add_list(const std::vector<Operation>& operations) {
    for (const Operation& operation : operations) add(operation);
  }
  std::vector<Step> take() { return std::move(steps_); }

 private:
  void add(const Operation& operation) {
    if (steps_.size() == kMostSteps) {
      throw InvalidArgument(
          fmt::format("`augmentation` must have at most {} operations", kMostSteps));
    }
    Step step;
    step.operation = operation.kind;
    const std::string name(operation.name());
    const std::size_t ordinal = counts_[name]++;
    step.key = {hash_name(name), ordinal};
    step.label = ordinal == 0 ? name : fmt::format("{}#{}", name, ordinal + 1);
    step.in = shape_;
    step.sees_whole = sees_whole_;
    check_place(operation);
    std::visit([&](const auto& kind) { this->check_one(kind, step); }, step.operation);
    if (stored_.dtype != DType::kUint8 && !moves_pixels(step.operation, step.in) &&
        !std::holds_alternative<RandomApply>(step.operation) && !erases_numbers_) {
      throw Unsupported(fmt::format("{} needs tensors that are stored as uint8, not {}", name,
                                    precache::name(stored_.dtype)),
                        "Store uint8, and normalize when reading.");
    }
    step.out = shape_;
    const std::size_t at = steps_.size();
    steps_.push_back(std::move(step));
    if (const auto* const apply = std::get_if<RandomApply>(&operation.kind)) {
      add_list(apply->operations);
      steps_[at].nested = steps_.size() - at - 1;
      if (shape_ != steps_[at].in) {
        throw InvalidArgument("RandomApply: `operations` must not change the size of images",
                              "Put operations that set a size before or after it.");
      }
    }
  }

  void check_place(const Operation& operation) {
    const auto* const erasing = std::get_if<RandomErasing>(&operation.kind);
    const bool erases_numbers = erasing != nullptr && erasing->after_normalize;
    if (erases_numbers_ && !erases_numbers) {
      throw InvalidArgument(fmt::format("{} must not follow a RandomErasing with `after_normalize`",
                                        operation.name()),
                            "Erase last.");
    }
    erases_numbers_ = erases_numbers;
  }

  template <typename T>
  void check_one(const T& operation, Step& step) {
    if constexpr (std::is_same_v<T, RandomApply>) {
      check_chance("RandomApply", operation.p);
    } else {
      check(operation, shape_);
    }
    if constexpr (std::is_same_v<T, RandomQuarterTurn>) sees_whole_ = false;
    if constexpr (kSetsSize<T>) {
      const ImageSize size = result_size(operation, shape_);
      sees_whole_ = sees_whole_ && keeps_whole(operation, shape_, size);
      if constexpr (kResamples<T>) {
        step.resampler = std::make_unique<Resampler>(ImageSize{shape_.height, shape_.width}, size,
                                                     operation.interpolation);
      }
      shape_.height = size.height;
      shape_.width = size.width;
    }
  }

  TensorSpec stored_;
  ImageShape shape_{stored_.channels, stored_.height, stored_.width};
  std::vector<Step> steps_;
  std::map<std::string, std::size_t, std::less<>> counts_;
  bool sees_whole_ = true;
  bool erases_numbers_ = false;
};

}  // namespace

std::vector<Step> make_steps(const Augmentation& list, const TensorSpec& stored) {
  StepMaker maker(stored);
  maker.add_list(list.operations);
  return maker.take();
}

Augmentation resized(Augmentation list, ImageSize size) {
  for (auto operation = list.operations.rbegin(); operation != list.operations.rend();
       ++operation) {
    const bool found = std::visit(
        [&]<typename T>(T& kind) {
          if constexpr (kSetsSize<T>) {
            kind.height = size.height;
            kind.width = size.width;
          }
          return kSetsSize<T>;
        },
        operation->kind);
    if (found) return list;
  }
  throw InvalidArgument("the image size cannot change: the list has no operation that sets it",
                        "Add one, such as RandomResizedCrop.");
}

}  // namespace augment
}  // namespace precache
