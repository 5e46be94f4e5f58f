// SPDX-License-Identifier: Apache-2.0
#include "reader/device/pixel_body.hpp"
#include "reader/device/pixel_kernel.hpp"
#include "reader/device/resident_body.hpp"

namespace {

using precache::device::PixelWork;
using precache::device::ResidentWork;

constexpr unsigned kThreads = 256;
constexpr unsigned kBlocksPerProcessor = 4;  // 64 registers a thread; five would spill
// Each block copies the table of 3 KiB, so it should write more than that.
constexpr unsigned kChunksPerThread = 8;
constexpr unsigned kLargestGridY = 65535;

}  // namespace

// extern "C", so that tests find the kernel by its name.
extern "C" __global__ void __launch_bounds__(kThreads, kBlocksPerProcessor)
    precache_pixel_kernel(const __grid_constant__ PixelWork work) {
  // The threads of a warp look up different pixels, which constant memory would serve one by one.
  __shared__ std::uint32_t table[precache::device::kTableEntries];
  const precache::device::ThreadPlace place{blockIdx.x, blockIdx.y, threadIdx.x,
                                            gridDim.x,  gridDim.y,  blockDim.x};
  precache::device::copy_table(work, place, table);
  __syncthreads();
  precache::device::run_thread(work, table, precache::device::share_of(place));
}

extern "C" __global__ void __launch_bounds__(kThreads)
    precache_resident_kernel(const __grid_constant__ ResidentWork work) {
  precache::device::choose_rows(work, blockIdx.x * blockDim.x + threadIdx.x,
                                gridDim.x * blockDim.x);
}

namespace precache::device {

cudaError_t find_pixels_kernel() {
  cudaFuncAttributes attributes{};
  return cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(precache_pixel_kernel));
}

cudaError_t launch_pixels(const PixelWork& work, cudaStream_t stream) {
  constexpr unsigned kPerBlock = kThreads * kChunksPerThread;
  const dim3 grid((chunks_per_sample(work) + kPerBlock - 1) / kPerBlock,
                  work.samples < kLargestGridY ? work.samples : kLargestGridY);
  void* arguments[] = {const_cast<PixelWork*>(&work)};
  return cudaLaunchKernel(reinterpret_cast<const void*>(precache_pixel_kernel), grid, kThreads,
                          arguments, 0, stream);
}

cudaError_t launch_choice(const ResidentWork& work, cudaStream_t stream) {
  const dim3 grid((work.count + kThreads - 1) / kThreads);
  void* arguments[] = {const_cast<ResidentWork*>(&work)};
  return cudaLaunchKernel(reinterpret_cast<const void*>(precache_resident_kernel), grid, kThreads,
                          arguments, 0, stream);
}

}  // namespace precache::device
