// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "precache/reader/batch_transform.hpp"
#include "reader/loader/augmentation_draw.hpp"
#include "reader/loader/pixel_kernels.hpp"

namespace precache {

/// Takes one stored tensor into a batch: crop, flip, normalise, cast and order of axes in one pass.
///
/// Equal, bit for bit, to doing it pixel by pixel with true divisions and rounding to nearest even.
/// Immutable, so any number of threads may use one at once.
class PixelPass {
 public:
  /// Throws InvalidArgument as BatchTransform::result does.
  PixelPass(const TensorSpec& stored, const BatchTransform& transform);

  [[nodiscard]] const TensorSpec& result() const { return result_; }
  /// Whether tensors stay as they are, byte for byte.
  [[nodiscard]] bool is_copy() const { return is_copy_; }
  /// Which of the kernels' ways was seen to be exact.
  [[nodiscard]] PixelMath math() const { return math_; }
  /// What pixels become, by channel modulo 3. Of tensors that are stored as floats it says nothing.
  [[nodiscard]] const std::array<ChannelRule, 3>& rules() const { return rules_; }
  /// Options that work but will not do what was probably meant, each a sentence.
  [[nodiscard]] std::vector<std::string> warnings() const;
  /// What (seed, epoch, sample) decides for this sample.
  [[nodiscard]] AugmentationDraw choose(std::uint64_t seed, std::uint64_t epoch,
                                        std::uint64_t sample) const;
  /// Writes `result().size_bytes()` bytes to `out`. With `stream`, past the caches, for batches
  /// that do not fit them; finish_streaming() must follow before another thread reads.
  /// REQUIRES: `tensor` is of the stored size, `out` is aligned for an element of the result.
  void run(std::span<const std::byte> tensor, const AugmentationDraw& choice, std::byte* out,
           bool stream) const;

 private:
  void set_rules(const Normalization& normalize);
  [[nodiscard]] bool is_exact(PixelMath math) const;

  TensorSpec stored_;
  TensorSpec result_;
  BatchTransform transform_;
  bool is_copy_;
  PixelMath math_ = PixelMath::kTable;
  std::array<ChannelRule, 3> rules_;
};

}  // namespace precache
