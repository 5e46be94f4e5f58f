// SPDX-License-Identifier: Apache-2.0
#include "reader/device/augment_body.hpp"
#include "reader/device/augment_kernel.hpp"
#include "reader/device/draw_body.hpp"
#include "reader/device/erase_numbers_body.hpp"

namespace {

using precache::device::DrawWork;
using precache::device::EraseWork;
using precache::device::PictureWork;

constexpr unsigned kDrawThreads = 64;
constexpr unsigned kPictureThreads = 256;
constexpr unsigned kBlocksPerProcessor = 2;  // up to 128 registers a thread; with 64 some spill
constexpr unsigned kMostErasingBlocks = 1024;

}  // namespace

// extern "C", so that tests find the kernels by their names.
extern "C" __global__ void __launch_bounds__(kDrawThreads)
    precache_draw_kernel(const __grid_constant__ DrawWork work) {
  const unsigned step = gridDim.x * blockDim.x;
  for (unsigned row = blockIdx.x * blockDim.x + threadIdx.x; row < work.samples; row += step) {
    precache::device::draw_row(work, row);
  }
}

extern "C" __global__ void __launch_bounds__(kPictureThreads, kBlocksPerProcessor)
    precache_picture_kernel(const __grid_constant__ PictureWork work) {
  __shared__ precache::device::BlockMemory memory;
  const precache::device::Block block(memory);
  for (unsigned row = blockIdx.x; row < work.samples; row += gridDim.x) {
    precache::device::make_picture(work, block, row, blockIdx.x);
  }
}

extern "C" __global__ void __launch_bounds__(kPictureThreads)
    precache_erase_kernel(const __grid_constant__ EraseWork work) {
  __shared__ precache::device::BlockMemory memory;
  const precache::device::Block block(memory);
  for (unsigned row = blockIdx.x; row < work.samples; row += gridDim.x) {
    precache::device::erase_row(work, block, row);
  }
}

namespace precache::device {

cudaError_t launch_draws(const DrawWork& work, cudaStream_t stream) {
  const dim3 grid((work.samples + kDrawThreads - 1) / kDrawThreads);
  void* arguments[] = {const_cast<DrawWork*>(&work)};
  return cudaLaunchKernel(reinterpret_cast<const void*>(precache_draw_kernel), grid, kDrawThreads,
                          arguments, 0, stream);
}

cudaError_t launch_pictures(const PictureWork& work, cudaStream_t stream) {
  const dim3 grid(work.samples < work.scratch.blocks ? work.samples : work.scratch.blocks);
  void* arguments[] = {const_cast<PictureWork*>(&work)};
  return cudaLaunchKernel(reinterpret_cast<const void*>(precache_picture_kernel), grid,
                          kPictureThreads, arguments, 0, stream);
}

cudaError_t launch_erasing(const EraseWork& work, cudaStream_t stream) {
  const dim3 grid(work.samples < kMostErasingBlocks ? work.samples : kMostErasingBlocks);
  void* arguments[] = {const_cast<EraseWork*>(&work)};
  return cudaLaunchKernel(reinterpret_cast<const void*>(precache_erase_kernel), grid,
                          kPictureThreads, arguments, 0, stream);
}

}  // namespace precache::device
