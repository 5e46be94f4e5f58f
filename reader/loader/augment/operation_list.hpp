// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "precache/formats/tensor_spec.hpp"
#include "precache/reader/augmentation.hpp"
#include "precache/reader/batch_transform.hpp"
#include "reader/loader/augment/operation_random.hpp"
#include "reader/loader/augment/planar_image.hpp"
#include "reader/loader/augment/resampler.hpp"

namespace precache::augment {

/// One operation of a list that was checked.
struct Step {
  Operation::Kind operation;
  OperationKey key;
  std::string label;  // the name; from the second of a name on with its number
  ImageShape in;
  bool sees_whole = false;  // no operation before it has cut off a part or turned the image
  ImageShape out;
  /// Of a RandomApply: the number of steps that follow and are skipped if it is not applied.
  std::size_t nested = 0;
  std::unique_ptr<Resampler> resampler;  // of RandomResizedCrop and Resize
  bool is_of_mask = false;               // mask_steps() made it
  Fill mask_fill{};                      // of a CenterCrop of masks
};

/// The steps of a list, those in a RandomApply after it. Throws InvalidArgument if an operation
/// does not fit the images or its place in the list, Unsupported if it needs uint8 and the tensors
/// are floats.
[[nodiscard]] std::vector<Step> make_steps(const Augmentation& list, const TensorSpec& stored);

/// The list with another size for its result: that of the last operation that sets one. Throws
/// InvalidArgument if there is none.
[[nodiscard]] Augmentation resized(Augmentation list, ImageSize size);

}  // namespace precache::augment
