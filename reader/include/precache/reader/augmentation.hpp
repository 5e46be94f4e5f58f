// SPDX-License-Identifier: Apache-2.0
/// Random changes of stored pixels, made when they are copied into a batch.
///
/// The operations, their fields and their defaults are torchvision's. An operation that draws the
/// same numbers makes the same pixels as torchvision does with Pillow images, bit for bit.
///
///     precache::LoaderOptions options;
///     options.transform.augmentation = {
///         {precache::RandomResizedCrop{.height = 224, .width = 224},
///          precache::RandomHorizontalFlip{}}};
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace precache {

enum class Interpolation { kNearest, kBilinear, kBicubic };
enum class PaddingMode { kConstant, kEdge, kReflect, kSymmetric };
enum class AutoAugmentPolicy { kImageNet, kCifar10, kSvhn };

/// The smallest and the largest value that may be drawn.
using Range = std::array<double, 2>;
/// Pixels for places outside the image: none for 0, one for all channels, or one for each channel.
using Fill = std::vector<std::uint8_t>;

/// Resizes a rectangle of random size and shape; the shape is width / height.
struct RandomResizedCrop {
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  Range scale{0.08, 1.0};  // the area, as a part of the image's
  Range ratio{3.0 / 4.0, 4.0 / 3.0};
  Interpolation interpolation = Interpolation::kBilinear;
};

/// With a width of 0, the shorter side becomes `height`, and the longer one keeps the shape.
struct Resize {
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  Interpolation interpolation = Interpolation::kBilinear;
};

/// Smaller images get a black border, as in torchvision.
struct CenterCrop {
  std::uint32_t height = 0;
  std::uint32_t width = 0;
};

struct RandomCrop {
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  std::array<std::uint32_t, 4> padding{};  // left, top, right, bottom
  bool pad_if_needed = false;
  Fill fill{};
  PaddingMode padding_mode = PaddingMode::kConstant;
};

struct RandomHorizontalFlip {
  double p = 0.5;
  /// Mirror a random half of the samples in even epochs, and the others in odd ones. `p` must be
  /// 0.5.
  bool alternate = false;
};

struct RandomVerticalFlip {
  double p = 0.5;
};

/// Turns square images by 0, 90, 180 or 270 degrees counter-clockwise, each as likely.
struct RandomQuarterTurn {};

struct RandomRotation {
  Range degrees{0, 0};  // counter-clockwise
  Interpolation interpolation = Interpolation::kNearest;
  Fill fill{};
  std::optional<std::array<double, 2>> center{};  // x, y; none: of the image
};

struct RandomAffine {
  Range degrees{0, 0};
  std::optional<std::array<double, 2>> translate{};  // largest parts of width and height
  std::optional<Range> scale{};
  std::optional<std::array<double, 4>> shear{};  // degrees: x from, x to, y from, y to
  Interpolation interpolation = Interpolation::kNearest;
  Fill fill{};
  std::optional<std::array<double, 2>> center{};
};

/// Changes by drawn factors, in random order. Properties without a range do not change.
struct ColorJitter {
  std::optional<Range> brightness{};
  std::optional<Range> contrast{};
  std::optional<Range> saturation{};
  std::optional<Range> hue{};  // within -0.5 and 0.5
};

struct RandomGrayscale {
  double p = 0.1;
};

struct RandomErasing {
  double p = 0.5;
  Range scale{0.02, 0.33};
  Range ratio{0.3, 3.3};
  std::vector<double> value{0};  // one for all channels, or one for each
  bool random = false;           // noise instead of `value`
  /// Erase the normalised numbers of the result, not the pixels. No other operation may follow.
  bool after_normalize = false;
};

struct GaussianBlur {
  std::array<std::uint32_t, 2> kernel_size{3, 3};  // of x and y, odd
  Range sigma{0.1, 2.0};
};

struct RandomSolarize {
  double threshold = 128;
  double p = 0.5;
};

struct RandomPosterize {
  std::uint32_t bits = 4;
  double p = 0.5;
};

struct RandomEqualize {
  double p = 0.5;
};

struct RandomAutocontrast {
  double p = 0.5;
};

struct RandomInvert {
  double p = 0.5;
};

struct RandomAdjustSharpness {
  double factor = 1;
  double p = 0.5;
};

struct TrivialAugmentWide {
  std::uint32_t num_magnitude_bins = 31;
  Interpolation interpolation = Interpolation::kNearest;
  Fill fill{};
};

struct RandAugment {
  std::uint32_t num_ops = 2;
  std::uint32_t magnitude = 9;
  std::uint32_t num_magnitude_bins = 31;
  Interpolation interpolation = Interpolation::kNearest;
  Fill fill{};
};

struct AutoAugment {
  AutoAugmentPolicy policy = AutoAugmentPolicy::kImageNet;
  Interpolation interpolation = Interpolation::kNearest;
  Fill fill{};
};

struct Operation;

/// Applies all of its operations or none. They must not change the size of the image.
struct RandomApply {
  std::vector<Operation> operations;
  double p = 0.5;
};

/// One step of an augmentation.
struct Operation {
  using Kind =
      std::variant<RandomResizedCrop, Resize, CenterCrop, RandomCrop, RandomHorizontalFlip,
                   RandomVerticalFlip, RandomQuarterTurn, RandomRotation, RandomAffine, ColorJitter,
                   RandomGrayscale, RandomErasing, GaussianBlur, RandomSolarize, RandomPosterize,
                   RandomEqualize, RandomAutocontrast, RandomInvert, RandomAdjustSharpness,
                   TrivialAugmentWide, RandAugment, AutoAugment, RandomApply>;
  Kind kind;

  template <typename T>
  requires std::constructible_from<Kind, T> Operation(T operation)
      : kind(std::move(operation)) {}  // so that lists need no casts

  /// The name of the struct, such as "RandomResizedCrop".
  [[nodiscard]] std::string_view name() const;
};

/// Operations in the order in which they are made.
struct Augmentation {
  std::vector<Operation> operations{};
  [[nodiscard]] bool empty() const { return operations.empty(); }
};

/// One number, word or tuple that an operation drew; nothing if it does nothing to the sample.
struct DrawnValue : std::variant<std::monostate, bool, std::int64_t, double, std::string,
                                 std::vector<DrawnValue>> {
  using variant::variant;
};

/// The choice of an operation for one sample.
struct OperationDraw {
  std::string name;  // the second RandomErasing of a list is "RandomErasing#2"
  DrawnValue value;
};

}  // namespace precache
