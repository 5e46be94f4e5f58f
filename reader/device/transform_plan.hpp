// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "precache/formats/tensor_spec.hpp"
#include "reader/device/augment_work.hpp"
#include "reader/device/cuda_handles.hpp"
#include "reader/device/pixel_work.hpp"
#include "reader/loader/augment/view_passes.hpp"

namespace precache::device {

/// The kernels that make the batches of a transform, with the memory that they need in between. One
/// is enough for all batches: their stream runs in order.
class TransformPlan {
 public:
  /// The alignment of cudaMalloc, which is more than any load needs.
  static constexpr std::uint64_t kAlignment = 256;
  /// Who makes batches that are the stored tensors, byte for byte.
  enum class Copies { kByCaller, kByKernel };

  /// Throws Unsupported for operations without a kernel, for tensors that are too large and for a
  /// device that this build has no kernel for, DeviceError.
  /// REQUIRES: `device` is the current one.
  TransformPlan(const TensorSpec& stored, std::shared_ptr<const ViewPasses> passes,
                std::uint64_t largest_batch, int device, Copies copies);

  [[nodiscard]] const ViewPasses& passes() const { return *passes_; }
  /// True if the caller copies the stored tensors. There are no kernels then.
  [[nodiscard]] bool is_copy() const { return is_copy_; }
  /// True if the kernels draw and need the keys of rows; otherwise they need draws.
  [[nodiscard]] bool has_lists() const { return has_lists_; }

  /// The offsets of a view's tensors and of the labels in a batch.
  [[nodiscard]] std::uint64_t view_at(std::size_t view, std::uint64_t rows) const;
  [[nodiscard]] std::uint64_t labels_at(std::uint64_t rows) const;

  /// The stored tensors and labels of a batch, on the device.
  struct Input {
    const std::byte* tensors = nullptr;
    const std::int64_t* labels = nullptr;
    std::uint64_t stored = 0;             // that many of both
    const std::uint64_t* rows = nullptr;  // as in PixelWork
    const AugmentationDraw* choices = nullptr;
    const RowKey* keys = nullptr;
    std::uint32_t samples = 0;
    std::uint64_t seed = 0;
    std::uint64_t epoch = 0;
  };
  /// Puts the kernels of a batch on a stream. Throws DeviceError.
  /// REQUIRES: not is_copy(); the device is the current one; input.samples is not 0.
  void launch(const Input& input, std::byte* out, cudaStream_t stream) const;

 private:
  struct View {
    PixelWork pixels;
    DeviceMemory steps;  // none: the view has no operations
    DeviceMemory values;
    StepList list;
    PictureWork pictures;
    bool erases_numbers = false;  // after the pixels are normalised
  };
  void add_list(View& view, const ViewPass& pass);
  void allocate(std::uint64_t largest_batch);
  void run_list(const View& view, std::uint32_t number, const Input& input,
                cudaStream_t stream) const;

  void erase_numbers(const View& view, const PixelWork& pixels, cudaStream_t stream) const;

  std::shared_ptr<const ViewPasses> passes_;
  TensorSpec stored_;
  int device_;
  bool is_copy_;
  bool has_lists_ = false;
  std::vector<View> views_;
  // Shared by the views:
  std::uint64_t draws_ = 0;          // of one sample
  std::uint64_t picture_bytes_ = 0;  // of one sample
  DeviceMemory draw_memory_;
  DeviceMemory picture_memory_;
  DeviceMemory scratch_memory_;
};

}  // namespace precache::device
