// SPDX-License-Identifier: Apache-2.0
#include "convert/reformat/tensor_conversion.hpp"

#include <fmt/format.h>

#include "formats/shard/normalization_check.hpp"
#include "precache/formats/error.hpp"

namespace precache {
namespace {

/// How the values of a tensor were made.
struct Values {
  bool are_known = false;  // from pixels, with this normalisation
  std::optional<Normalization> normalize;
};

Values values_of(const TensorMeaning& meaning) {
  if (!meaning.recipe.problem().empty()) {
    throw InvalidArgument("the recipe of the dataset cannot be read: " + meaning.recipe.problem());
  }
  if (meaning.spec.dtype == DType::kUint8) return {.are_known = true, .normalize = {}};
  return {meaning.recipe.knows_values(meaning.spec.dtype), meaning.recipe.normalization()};
}

void check_normalization(const Normalization& normalize, const TensorSpec& stored,
                         const Values& values, DType dtype) {
  if (values.normalize) {
    throw InvalidArgument("the tensors are already normalised",
                          "Leave out `normalize`; the `dtype` uint8 restores the pixels.");
  }
  if (!values.are_known) {
    throw InvalidArgument(
        fmt::format("the meaning of the values of these {} tensors is not known, so they cannot be "
                    "normalised",
                    name(stored.dtype)),
        "Normalise them where they were made, or while reading.");
  }
  if (dtype == DType::kUint8) {
    throw InvalidArgument("`normalize` needs a float `dtype`",
                          "Choose float16, bfloat16 or float32, or keep uint8, which is smaller, "
                          "and normalise while reading.");
  }
  const auto differ = [](const std::array<float, 3>& values_of_channels) {
    return values_of_channels !=
           std::array{values_of_channels[0], values_of_channels[0], values_of_channels[0]};
  };
  if (stored.channels == 1 && (differ(normalize.mean) || differ(normalize.std))) {
    throw InvalidArgument("`normalize` has values for three channels, but the tensors have one",
                          "Give MEAN/STD, such as 0.449/0.226.");
  }
  if (!normalize.has_usable_std()) {
    throw InvalidArgument("`normalize` needs standard deviations above 0",
                          "Choose values from 1.2e-38 to 1.");
  }
  check_unit_range(normalize);
}

}  // namespace

TensorConversion::TensorConversion(const TensorMeaning& stored, const ReformatOptions& options)
    : stored_dtype_(stored.spec.dtype) {
  const Values values = values_of(stored);
  const bool has_floats = stored.spec.dtype != DType::kUint8;
  const DType dtype = options.dtype.value_or(stored.spec.dtype);
  if (options.normalize) check_normalization(*options.normalize, stored.spec, values, dtype);
  if (has_floats && (dtype != stored.spec.dtype || options.normalize) && values.are_known) {
    recovery_.emplace(stored.spec, values.normalize.value_or(Normalization()));
    if (!recovery_->is_possible()) recovery_.reset();
  }
  if (has_floats && !recovery_ && (dtype == DType::kUint8 || options.normalize)) {
    throw InvalidArgument(
        fmt::format("the pixels of these {} tensors cannot be recovered", name(stored.spec.dtype)),
        values.are_known
            ? "Their normalisation gave some pixels the same value. Build them from the images "
              "again."
            : "Only a dataset.json tells how pixels became values. Choose a float `dtype`.");
  }
  BatchTransform transform;
  transform.dtype = dtype;
  transform.layout = options.layout.value_or(stored.spec.layout);
  // Normalised tensors stay normalised in every float type.
  const auto normalize = options.normalize ? options.normalize : values.normalize;
  if (dtype != DType::kUint8 && (recovery_ || !has_floats)) transform.normalize = normalize;
  TensorSpec from = stored.spec;
  if (recovery_) from.dtype = DType::kUint8;
  pass_.emplace(from, transform);
  result_.spec = pass_->result();
  result_.recipe =
      result_.spec == stored.spec && !options.normalize
          ? stored.recipe
          : stored.recipe.with_values(
                result_.spec, dtype == DType::kUint8 ? std::nullopt : normalize, values.are_known);
}

bool TensorConversion::run(std::span<const std::byte> tensor, std::span<std::byte> out,
                           std::vector<std::uint8_t>& pixels) const {
  if (recovery_) {
    pixels.resize(tensor.size() / size_bytes(stored_dtype_));
    if (!recovery_->run(tensor, pixels)) return false;
    tensor = std::as_bytes(std::span(pixels));
  }
  pass_->run(tensor, {}, out.data(), false);
  return true;
}

}  // namespace precache
