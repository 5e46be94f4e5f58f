// SPDX-License-Identifier: Apache-2.0
#include "reader/python/augmentation_binding.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "precache/formats/error.hpp"

namespace precache::python {
namespace {

/// The fields of an operation by their names in C++; `_native.py` makes them.
class Fields {
 public:
  explicit Fields(nb::dict values) : values_(std::move(values)) {}

  template <typename T>
  [[nodiscard]] T get(const char* field) const {
    return nb::cast<T>(values_[field]);
  }
  [[nodiscard]] double p() const { return get<double>("p"); }
  [[nodiscard]] std::uint32_t height() const { return get<std::uint32_t>("height"); }
  [[nodiscard]] std::uint32_t width() const { return get<std::uint32_t>("width"); }
  [[nodiscard]] Range range(const char* field) const { return get<Range>(field); }
  [[nodiscard]] std::optional<Range> range_or_none(const char* field) const {
    return get<std::optional<Range>>(field);
  }
  [[nodiscard]] Fill fill() const { return get<Fill>("fill"); }
  [[nodiscard]] Interpolation interpolation() const {
    static const std::map<std::string_view, Interpolation> kNames{
        {"nearest", Interpolation::kNearest},
        {"bilinear", Interpolation::kBilinear},
        {"bicubic", Interpolation::kBicubic}};
    return one_of("interpolation", kNames);
  }
  template <typename Enum>
  [[nodiscard]] Enum one_of(const char* field,
                            const std::map<std::string_view, Enum>& names) const {
    const auto name = get<std::string>(field);
    const auto found = names.find(name);
    if (found == names.end()) throw InvalidArgument("`" + std::string(field) + "` is " + name);
    return found->second;
  }

 private:
  nb::dict values_;
};

using Maker = Operation (*)(const Fields&);

/// For operations that have only a probability.
template <typename Kind>
Operation with_p(const Fields& fields) {
  return Kind{.p = fields.p()};
}

Operation random_crop(const Fields& fields) {
  static const std::map<std::string_view, PaddingMode> kModes{
      {"constant", PaddingMode::kConstant},
      {"edge", PaddingMode::kEdge},
      {"reflect", PaddingMode::kReflect},
      {"symmetric", PaddingMode::kSymmetric}};
  return RandomCrop{.height = fields.height(),
                    .width = fields.width(),
                    .padding = fields.get<std::array<std::uint32_t, 4>>("padding"),
                    .pad_if_needed = fields.get<bool>("pad_if_needed"),
                    .fill = fields.fill(),
                    .padding_mode = fields.one_of("padding_mode", kModes)};
}

Operation random_affine(const Fields& fields) {
  using Pair = std::optional<std::array<double, 2>>;
  return RandomAffine{.degrees = fields.range("degrees"),
                      .translate = fields.get<Pair>("translate"),
                      .scale = fields.range_or_none("scale"),
                      .shear = fields.get<std::optional<std::array<double, 4>>>("shear"),
                      .interpolation = fields.interpolation(),
                      .fill = fields.fill(),
                      .center = fields.get<Pair>("center")};
}

Operation auto_augment(const Fields& fields) {
  static const std::map<std::string_view, AutoAugmentPolicy> kPolicies{
      {"imagenet", AutoAugmentPolicy::kImageNet},
      {"cifar10", AutoAugmentPolicy::kCifar10},
      {"svhn", AutoAugmentPolicy::kSvhn}};
  return AutoAugment{.policy = fields.one_of("policy", kPolicies),
                     .interpolation = fields.interpolation(),
                     .fill = fields.fill()};
}

Operation operation_of(nb::handle named);

std::vector<Operation> operations_of(const nb::list& named) {
  std::vector<Operation> operations;
  for (const nb::handle each : named) operations.push_back(operation_of(each));
  return operations;
}

const std::map<std::string_view, Maker>& geometry_makers() {
  static const std::map<std::string_view, Maker> kMakers{
      {"RandomResizedCrop",
       [](const Fields& fields) -> Operation {
         return RandomResizedCrop{.height = fields.height(),
                                  .width = fields.width(),
                                  .scale = fields.range("scale"),
                                  .ratio = fields.range("ratio"),
                                  .interpolation = fields.interpolation()};
       }},
      {"Resize",
       [](const Fields& fields) -> Operation {
         return Resize{fields.height(), fields.width(), fields.interpolation()};
       }},
      {"CenterCrop",
       [](const Fields& fields) -> Operation {
         return CenterCrop{fields.height(), fields.width()};
       }},
      {"RandomCrop", &random_crop},
      {"RandomHorizontalFlip",
       [](const Fields& fields) -> Operation {
         return RandomHorizontalFlip{.p = fields.p(), .alternate = fields.get<bool>("alternate")};
       }},
      {"RandomVerticalFlip", &with_p<RandomVerticalFlip>},
      {"RandomQuarterTurn", [](const Fields&) -> Operation { return RandomQuarterTurn{}; }},
      {"RandomRotation",
       [](const Fields& fields) -> Operation {
         return RandomRotation{
             .degrees = fields.range("degrees"),
             .interpolation = fields.interpolation(),
             .fill = fields.fill(),
             .center = fields.get<std::optional<std::array<double, 2>>>("center")};
       }},
      {"RandomAffine", &random_affine},
      {"RandomApply", [](const Fields& fields) -> Operation {
         return RandomApply{.operations = operations_of(fields.get<nb::list>("operations")),
                            .p = fields.p()};
       }}};
  return kMakers;
}

const std::map<std::string_view, Maker>& colour_makers() {
  static const std::map<std::string_view, Maker> kMakers{
      {"ColorJitter",
       [](const Fields& fields) -> Operation {
         return ColorJitter{.brightness = fields.range_or_none("brightness"),
                            .contrast = fields.range_or_none("contrast"),
                            .saturation = fields.range_or_none("saturation"),
                            .hue = fields.range_or_none("hue")};
       }},
      {"RandomGrayscale", &with_p<RandomGrayscale>},
      {"RandomErasing",
       [](const Fields& fields) -> Operation {
         return RandomErasing{.p = fields.p(),
                              .scale = fields.range("scale"),
                              .ratio = fields.range("ratio"),
                              .value = fields.get<std::vector<double>>("value"),
                              .random = fields.get<bool>("random"),
                              .after_normalize = fields.get<bool>("after_normalize")};
       }},
      {"GaussianBlur",
       [](const Fields& fields) -> Operation {
         return GaussianBlur{.kernel_size = fields.get<std::array<std::uint32_t, 2>>("kernel_size"),
                             .sigma = fields.range("sigma")};
       }},
      {"RandomSolarize",
       [](const Fields& fields) -> Operation {
         return RandomSolarize{.threshold = fields.get<double>("threshold"), .p = fields.p()};
       }},
      {"RandomPosterize",
       [](const Fields& fields) -> Operation {
         return RandomPosterize{.bits = fields.get<std::uint32_t>("bits"), .p = fields.p()};
       }},
      {"RandomEqualize", &with_p<RandomEqualize>},
      {"RandomAutocontrast", &with_p<RandomAutocontrast>},
      {"RandomInvert", &with_p<RandomInvert>},
      {"RandomAdjustSharpness",
       [](const Fields& fields) -> Operation {
         return RandomAdjustSharpness{.factor = fields.get<double>("factor"), .p = fields.p()};
       }},
      {"TrivialAugmentWide",
       [](const Fields& fields) -> Operation {
         return TrivialAugmentWide{
             .num_magnitude_bins = fields.get<std::uint32_t>("num_magnitude_bins"),
             .interpolation = fields.interpolation(),
             .fill = fields.fill()};
       }},
      {"RandAugment",
       [](const Fields& fields) -> Operation {
         return RandAugment{.num_ops = fields.get<std::uint32_t>("num_ops"),
                            .magnitude = fields.get<std::uint32_t>("magnitude"),
                            .num_magnitude_bins = fields.get<std::uint32_t>("num_magnitude_bins"),
                            .interpolation = fields.interpolation(),
                            .fill = fields.fill()};
       }},
      {"AutoAugment", &auto_augment}};
  return kMakers;
}

Operation operation_of(nb::handle named) {
  const auto pair = nb::cast<nb::tuple>(named);
  const auto name = nb::cast<std::string>(pair[0]);
  for (const auto* const makers : {&geometry_makers(), &colour_makers()}) {
    const auto found = makers->find(name);
    if (found != makers->end()) return found->second(Fields(nb::cast<nb::dict>(pair[1])));
  }
  throw InvalidArgument("there is no operation " + name);
}

}  // namespace

Augmentation augmentation_of(const nb::list& named) { return {operations_of(named)}; }

nb::object object_of(const DrawnValue& value) {
  if (const auto* const truth = std::get_if<bool>(&value)) return nb::cast(*truth);
  if (const auto* const whole = std::get_if<std::int64_t>(&value)) return nb::cast(*whole);
  if (const auto* const number = std::get_if<double>(&value)) return nb::cast(*number);
  if (const auto* const text = std::get_if<std::string>(&value)) return nb::cast(*text);
  if (const auto* const parts = std::get_if<std::vector<DrawnValue>>(&value)) {
    nb::list objects;
    for (const DrawnValue& part : *parts) objects.append(object_of(part));
    return nb::tuple(objects);
  }
  return nb::none();
}

nb::dict dict_of(const std::vector<OperationDraw>& draws) {
  nb::dict result;
  for (const OperationDraw& draw : draws) result[draw.name.c_str()] = object_of(draw.value);
  return result;
}

}  // namespace precache::python
