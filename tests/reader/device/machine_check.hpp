// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "precache/formats/error.hpp"
#include "precache/reader/device_loader.hpp"
#include "tests/support/bytes.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/datasets.hpp"

/// The checks for a machine's GPU. They also run with the fake CUDA runtime, which shows that the
/// checks themselves are right.
namespace precache::test {

/// All transforms of stored tensors, with and without crops whose rows are whole stores of the
/// kernel.
inline std::vector<BatchTransform> all_transforms(const TensorSpec& stored) {
  std::vector<BatchTransform> all(1);
  for (const DType dtype : {DType::kUint8, DType::kFloat16, DType::kBfloat16, DType::kFloat32}) {
    if (dtype == DType::kUint8 && stored.dtype != DType::kUint8) continue;
    for (const Layout layout : {Layout::kChw, Layout::kHwc}) {
      for (const auto& crop : {std::optional<Crop>(), std::optional(Crop{13, 21}),
                               std::optional(Crop{16, 32}), std::optional(Crop{17, 7})}) {
        for (const bool flip : {false, true}) {
          BatchTransform& transform = all.emplace_back();
          transform.dtype = dtype;
          transform.layout = layout;
          transform.crop = crop;
          transform.flip = flip;
          if (stored.dtype == DType::kUint8 && dtype != DType::kUint8 && stored.channels == 3) {
            transform.normalize = {{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};
          }
        }
      }
    }
  }
  return all;
}

/// Lists of operations that need all of the kernels.
inline std::vector<BatchTransform> all_lists() {
  const Augmentation lists[] = {
      {{RandomResizedCrop{.height = 16, .width = 24}, RandomHorizontalFlip{},
        ColorJitter{.brightness = Range{0.6, 1.4},
                    .contrast = Range{0.6, 1.4},
                    .saturation = Range{0.6, 1.4},
                    .hue = Range{-0.1, 0.1}}}},
      {{RandomCrop{.height = 16, .width = 30, .padding = {4, 4, 4, 4}}, RandomVerticalFlip{},
        RandomRotation{.degrees = {-30, 30}}, RandomErasing{.p = 0.8}}},
      {{RandomAffine{.degrees = {-9, 9},
                     .scale = Range{0.8, 1.2},
                     .interpolation = Interpolation::kBilinear},
        Resize{.height = 17, .width = 9, .interpolation = Interpolation::kBicubic},
        RandomEqualize{}, RandomAutocontrast{}, RandomGrayscale{.p = 0.5}}}};
  std::vector<BatchTransform> all;
  for (const Augmentation& list : lists) {
    for (const DType dtype : {DType::kUint8, DType::kFloat16}) {
      BatchTransform& transform = all.emplace_back();
      transform.augmentation = list;
      transform.dtype = dtype;
    }
  }
  return all;
}

/// Compares one epoch of a DeviceLoader with a Loader: tensors, labels, samples.
/// REQUIRES: the device is the current one.
inline bool is_epoch_right(const Dataset& dataset, const LoaderOptions& options,
                           const DeviceOptions& device) {
  DeviceLoader loader(dataset, options, device);
  Loader expected(dataset, options);
  bool right = loader.spec() == expected.spec();
  while (const auto wanted = expected.next()) {
    const auto batch = loader.next();
    if (!batch || batch->size() != wanted->size() || batch->path() != device.device_path)
      return false;
    Bytes images(batch->size() * batch->spec().size_bytes());
    std::vector<std::int64_t> labels(batch->size());
    batch->wait();
    REQUIRE(cudaMemcpy(images.data(), batch->images(), images.size(), cudaMemcpyDeviceToHost) ==
            cudaSuccess);
    REQUIRE(cudaMemcpy(labels.data(), batch->labels(), labels.size() * sizeof(std::int64_t),
                       cudaMemcpyDeviceToHost) == cudaSuccess);
    for (std::size_t i = 0; i < batch->size(); ++i) {
      const std::size_t row = batch->spec().size_bytes();
      right = right && same_bytes({images.data() + i * row, row}, (*wanted)[i]);
    }
    right = right && std::ranges::equal(labels, wanted->labels()) &&
            std::ranges::equal(batch->samples(), wanted->samples());
  }
  return right && !loader.next();
}

/// Checks all transforms of tensors like `stored`, by all paths. If the driver refuses to
/// register the shards, `refused` gets the path and the reason, and the path is not tried again.
inline void check_machine(const TensorSpec& stored, std::map<DevicePath, std::string>& refused) {
  const TempFolder folder;
  const Dataset dataset =
      Dataset::open(make_dataset(folder.path(), {.spec = stored, .shards = {7, 4}}).folder);
  std::vector<BatchTransform> transforms = all_transforms(stored);
  if (stored.dtype == DType::kUint8 && stored.channels == 3) {
    std::ranges::copy(all_lists(), std::back_inserter(transforms));
  }
  for (const DevicePath path :
       {DevicePath::kStaged, DevicePath::kStrided, DevicePath::kGather, DevicePath::kResident}) {
    for (const BatchTransform& transform : transforms) {
      if (refused.contains(path)) continue;
      LoaderOptions options;
      options.batch_size = 4;
      options.last_batch = LastBatch::kKeep;
      options.threads = 1;
      options.order.shuffle = path == DevicePath::kStrided ? Shuffle::kNone : Shuffle::kFull;
      options.transform = transform;
      DeviceOptions device;
      device.device_path = path;
      device.pin_shards_up_to_bytes = 1 << 30;
      device.resident_up_to_bytes = 1 << 30;
      CAPTURE(stored.text(), name(path), transform.result(stored).text(), transform.flip);
      try {
        const bool right = is_epoch_right(dataset, options, device);
        CHECK(right);
      } catch (const DeviceError& error) {
        CHECK((path == DevicePath::kStrided || path == DevicePath::kGather));
        CHECK_THAT(error.what(), contains("cudaHostRegister of '") && contains("cudaError"));
        refused[path] = error.what();
      }
    }
  }
}

}  // namespace precache::test
