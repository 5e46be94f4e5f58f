// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "convert/reformat/pixel_recovery.hpp"
#include "precache/convert/reformat.hpp"
#include "precache/formats/recipe.hpp"
#include "reader/loader/pixel_pass.hpp"

namespace precache {

/// The shape and type of a dataset's tensors, and their recipe as far as it is known.
struct TensorMeaning {
  TensorSpec spec;
  StoredRecipe recipe;
};

/// Converts stored tensors to the requested type and layout.
///
/// Floats that a known recipe made from pixels are converted through these pixels, so that the
/// result is the same as from the image. Immutable, so any number of threads may use one at once.
class TensorConversion {
 public:
  /// Throws InvalidArgument if these tensors cannot be converted so.
  TensorConversion(const TensorMeaning& stored, const ReformatOptions& options);

  /// The spec of the converted tensors, and the recipe that makes such tensors.
  [[nodiscard]] const TensorMeaning& result() const { return result_; }
  /// Whether tensors stay as they are, byte for byte.
  [[nodiscard]] bool is_copy() const { return pass_->is_copy() && !recovery_; }
  /// `pixels` is scratch memory of the caller. False if the tensor has values that its recipe
  /// cannot produce. REQUIRES: `out` is aligned for an element.
  [[nodiscard]] bool run(std::span<const std::byte> tensor, std::span<std::byte> out,
                         std::vector<std::uint8_t>& pixels) const;

 private:
  DType stored_dtype_;
  TensorMeaning result_;
  std::optional<PixelRecovery> recovery_;  // of floats that are converted through pixels
  std::optional<PixelPass> pass_;
};

}  // namespace precache
