// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "precache/reader/batch_transform.hpp"
#include "reader/loader/augment/operation_list.hpp"
#include "reader/loader/pixel_pass.hpp"

namespace precache {

/// Makes one tensor of a batch from a stored one: runs a list of operations, then normalises, casts
/// and reorders the axes. Without a list it is a PixelPass.
///
/// Any number of threads may use one object at once. Each thread keeps memory for the images
/// between operations, which it uses again.
class ViewPass {
 public:
  /// Without `list`: crop and flip of the transform. Throws InvalidArgument and Unsupported, as
  /// BatchTransform::result().
  ViewPass(const TensorSpec& stored, const BatchTransform& transform, const Augmentation* list);

  [[nodiscard]] const TensorSpec& result() const { return pass_.result(); }
  /// True if tensors do not change, byte for byte.
  [[nodiscard]] bool is_copy() const { return steps_.empty() && pass_.is_copy(); }
  /// The last part: crop and flip without a list, normalisation and casts.
  [[nodiscard]] const PixelPass& pass() const { return pass_; }
  [[nodiscard]] bool has_list() const { return list_.has_value(); }
  /// The checked operations of the list.
  [[nodiscard]] const std::vector<augment::Step>& steps() const { return steps_; }

  /// The crop and flip of `key`.  REQUIRES: not has_list().
  [[nodiscard]] AugmentationDraw choose_plain(const SampleKey& key) const;

  /// As PixelPass::run(), with the draws of `key`. `original`: the size of the picture that was
  /// stretched to the stored one, if it is known.
  void run(std::span<const std::byte> tensor, const SampleKey& key,
           const std::optional<ImageSize>& original, std::byte* out, bool stream) const;
  /// The draws of `key`, in the order of the list.
  [[nodiscard]] std::vector<OperationDraw> draw(const SampleKey& key,
                                                const std::optional<ImageSize>& original) const;
  /// The same pass with another size of the result. Throws InvalidArgument.
  [[nodiscard]] ViewPass with_size(ImageSize size) const;
  /// The pass for a mask of the same sample: the same geometry, by nearest neighbour, and no
  /// other changes. Its tensors are uint8 with one channel. Throws InvalidArgument, as
  /// mask_steps().
  [[nodiscard]] ViewPass for_masks() const;

 private:
  void erase(const SampleKey& key, std::byte* out) const;
  [[nodiscard]] std::vector<OperationDraw> draw_plain(const SampleKey& key) const;

  TensorSpec stored_;
  BatchTransform transform_;  // without lists
  std::optional<Augmentation> list_;
  std::vector<augment::Step> steps_;
  PixelPass pass_;
};

}  // namespace precache
