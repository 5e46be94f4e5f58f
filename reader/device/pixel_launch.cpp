// SPDX-License-Identifier: Apache-2.0
#include "reader/device/pixel_launch.hpp"

#include <fmt/format.h>

#include <limits>

#include "formats/bytes/half_float.hpp"
#include "precache/formats/error.hpp"
#include "reader/device/cuda_handles.hpp"
#include "reader/device/pixel_kernel.hpp"

namespace precache::device {
namespace {

/// Throws Unsupported if this build has no kernel for the device.
void check_kernel(int device) {
  const cudaError_t error = find_pixels_kernel();
  if (error != cudaErrorNoKernelImageForDevice && error != cudaErrorInvalidDeviceFunction &&
      error != cudaErrorUnsupportedPtxVersion) {
    return check(error, "cudaFuncGetAttributes", device);
  }
  (void)cudaGetLastError();
  throw Unsupported(
      fmt::format("this build has no kernel that device {} can run: {}", device, text_of(error)),
      error == cudaErrorUnsupportedPtxVersion
          ? "The driver is too old to compile it: update the driver."
          : "Build with the device's architecture in PRECACHE_CUDA_ARCHITECTURES.");
}

}  // namespace

PixelWork pixel_work(const TensorSpec& stored, const PixelPass& pass, int device) {
  if (stored.size_bytes() / size_bytes(stored.dtype) > std::numeric_limits<std::uint32_t>::max()) {
    throw Unsupported(fmt::format("tensors of {} have too many elements to be transformed on a GPU",
                                  stored.text()));
  }
  check_kernel(device);
  const TensorSpec& result = pass.result();
  PixelWork work;
  work.channels = stored.channels;
  work.in_height = stored.height;
  work.in_width = stored.width;
  work.height = result.height;
  work.width = result.width;
  work.in_hwc = stored.layout == Layout::kHwc;
  work.out_hwc = result.layout == Layout::kHwc;
  work.in_type = stored.dtype;
  work.out_type = result.dtype;
  for (std::size_t i = 0; i < kTableEntries && stored.dtype == DType::kUint8; ++i) {
    const ChannelRule& rule = pass.rules()[i / 256];
    work.table[i / 256][i % 256] =
        result.dtype == DType::kFloat32 ? bits_of(rule.floats[i % 256]) : rule.halves[i % 256];
  }
  return work;
}

}  // namespace precache::device
