// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include "reader/device/pixel_work.hpp"
#include "reader/device/resident_body.hpp"

namespace precache::device {

/// cudaSuccess if the current device can run the kernel, else the reason. The driver may have to
/// compile it first.
[[nodiscard]] cudaError_t find_pixels_kernel();

/// Puts the work on a stream of the current device. All pointers in it are device memory.
[[nodiscard]] cudaError_t launch_pixels(const PixelWork& work, cudaStream_t stream);

/// The same for the choice of samples and draws.  REQUIRES: work.count != 0.
[[nodiscard]] cudaError_t launch_choice(const ResidentWork& work, cudaStream_t stream);

}  // namespace precache::device
