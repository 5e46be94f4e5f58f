// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include "reader/device/augment_work.hpp"

namespace precache::device {

/// Put the draws, the pictures and the erased numbers of a batch on a stream of the current device.
/// All pointers in the works are device memory.  REQUIRES: work.samples != 0.
[[nodiscard]] cudaError_t launch_draws(const DrawWork& work, cudaStream_t stream);
[[nodiscard]] cudaError_t launch_pictures(const PictureWork& work, cudaStream_t stream);
[[nodiscard]] cudaError_t launch_erasing(const EraseWork& work, cudaStream_t stream);

}  // namespace precache::device
