// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include "reader/device/pixel_work.hpp"

namespace precache::device {

/// Whether the current device can run the kernel, which it may have to compile first: cudaSuccess,
/// or why not.
[[nodiscard]] cudaError_t find_pixels_kernel();

/// Puts the work on a stream of the current device. All its pointers are the device's.
[[nodiscard]] cudaError_t launch_pixels(const PixelWork& work, cudaStream_t stream);

}  // namespace precache::device
