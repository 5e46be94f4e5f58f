// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "formats/bytes/checked_math.hpp"
#include "reader/device/transform_plan.hpp"
#include "reader/loader/augment/epoch_passes.hpp"

namespace precache::device {

/// The plans of the passes that epochs have: that of the last batches and, where sizes change
/// between epochs, that of the batches before them.
class EpochPlans {
 public:
  using Plan = std::shared_ptr<const TransformPlan>;

  EpochPlans(const TensorSpec& stored, std::uint64_t largest_batch, int device,
             TransformPlan::Copies copies)
      : stored_(stored), largest_batch_(largest_batch), device_(device), copies_(copies) {}

  /// Makes the plan if these passes are new. Kernels for earlier ones are on `stream`. Throws the
  /// exceptions of TransformPlan.  REQUIRES: the device is the current one.
  [[nodiscard]] const Plan& of(const std::shared_ptr<const ViewPasses>& passes,
                               cudaStream_t stream) {
    const auto found = std::ranges::find_if(
        plans_, [&](const Plan& plan) { return &plan->passes() == passes.get(); });
    if (found != plans_.end()) return *found;
    if (plans_.size() == kMostPlans) {
      // Kernels may still use the memory of the oldest.
      check(cudaStreamSynchronize(stream), "cudaStreamSynchronize", device_);
      plans_.erase(plans_.begin());
    }
    plans_.push_back(
        std::make_shared<TransformPlan>(stored_, passes, largest_batch_, device_, copies_));
    return plans_.back();
  }

  /// The memory for a batch of any epoch.
  [[nodiscard]] std::uint64_t batch_bytes(const EpochPasses& passes) const {
    const std::uint64_t images = checked_add(passes.largest_batch_bytes(largest_batch_),
                                             passes.views() * TransformPlan::kAlignment);
    return checked_add(round_up(images, TransformPlan::kAlignment),
                       largest_batch_ * sizeof(std::int64_t));
  }

 private:
  static constexpr std::size_t kMostPlans = 2;

  TensorSpec stored_;
  std::uint64_t largest_batch_;
  int device_;
  TransformPlan::Copies copies_;
  std::vector<Plan> plans_;
};

}  // namespace precache::device
