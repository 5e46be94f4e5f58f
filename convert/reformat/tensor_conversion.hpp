// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "convert/reformat/pixel_recovery.hpp"
#include "precache/convert/reformat.hpp"
#include "precache/formats/recipe.hpp"
#include "reader/loader/pixel_pass.hpp"

namespace precache {

/// What a dataset's tensors are, and how they came to be as far as that is known.
struct TensorMeaning {
  TensorSpec spec;
  StoredRecipe recipe;
};

/// The way from stored tensors to those that are asked for.
///
/// Floats that a known recipe made of pixels go through the pixels, so that the result is what the
/// recipe would have given at once. Immutable, so any number of threads may use one at once.
class TensorConversion {
 public:
  /// Throws InvalidArgument for what cannot be had from these tensors, or has no meaning.
  TensorConversion(const TensorMeaning& stored, const ReformatOptions& options);

  /// What the tensors become, and the recipe that makes such tensors.
  [[nodiscard]] const TensorMeaning& result() const { return result_; }
  /// Whether tensors stay as they are, byte for byte.
  [[nodiscard]] bool is_copy() const { return pass_->is_copy() && !recovery_; }
  /// `pixels` is memory to work in, kept by the caller. False if the tensor has values that its
  /// recipe cannot have given. REQUIRES: `out` is aligned for an element.
  [[nodiscard]] bool run(std::span<const std::byte> tensor, std::span<std::byte> out,
                         std::vector<std::uint8_t>& pixels) const;

 private:
  DType stored_dtype_;
  TensorMeaning result_;
  std::optional<PixelRecovery> recovery_;  // where the way is through pixels
  std::optional<PixelPass> pass_;
};

}  // namespace precache
