// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "precache/reader/batch_transform.hpp"
#include "reader/loader/crop_draw.hpp"
#include "reader/loader/pixel_kernels.hpp"

namespace precache {

/// Copies one stored tensor into a batch: crops, flips, normalises, casts and reorders the axes in
/// one pass.
///
/// The result equals, bit for bit, true divisions pixel by pixel, rounded to nearest even.
/// Immutable, so any number of threads may use one at once.
class PixelPass {
 public:
  /// Throws the InvalidArgument of BatchTransform::result. REQUIRES: the transform has no lists.
  PixelPass(const TensorSpec& stored, const BatchTransform& transform);

  [[nodiscard]] const TensorSpec& result() const { return result_; }
  /// True if tensors do not change, byte for byte.
  [[nodiscard]] bool is_copy() const { return is_copy_; }
  /// The fastest arithmetic that is exact for all pixels.
  [[nodiscard]] PixelMath math() const { return math_; }
  /// The rules for pixels, by channel modulo 3. Not used for tensors that are stored as floats.
  [[nodiscard]] const std::array<ChannelRule, 3>& rules() const { return rules_; }
  /// Sentences about options that are valid but probably not meant.
  [[nodiscard]] std::vector<std::string> warnings() const;
  /// The draw of this sample, a function of (seed, epoch, sample).
  [[nodiscard]] AugmentationDraw choose(std::uint64_t seed, std::uint64_t epoch,
                                        std::uint64_t sample) const {
    return draw_crop(crop_rule(), seed, epoch, sample);
  }
  [[nodiscard]] CropRule crop_rule() const;
  /// Writes `result().size_bytes()` bytes to `out`. `stream` bypasses the caches, for batches that
  /// do not fit them; call finish_streaming() before another thread reads.
  /// REQUIRES: `tensor` has the stored size, `out` is aligned for an element of the result.
  void run(std::span<const std::byte> tensor, const AugmentationDraw& choice, std::byte* out,
           bool stream) const;

  /// The last part of run() for pixels from elsewhere: writes those that `source` names, which have
  /// the size of the result, normalised, cast and in its layout.
  void finish(PixelJob source, std::byte* out, bool stream) const;

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
