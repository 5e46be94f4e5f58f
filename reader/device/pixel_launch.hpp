// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "precache/formats/tensor_spec.hpp"
#include "reader/device/pixel_work.hpp"
#include "reader/loader/pixel_pass.hpp"

namespace precache::device {

/// The work of the kernel without a batch. Throws Unsupported for tensors that are too large and
/// for a device that this build has no kernel for, DeviceError.  REQUIRES: `device` is the current
/// one.
[[nodiscard]] PixelWork pixel_work(const TensorSpec& stored, const PixelPass& pass, int device);

}  // namespace precache::device
