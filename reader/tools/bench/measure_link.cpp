// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>

#include "precache/tools/measure.hpp"
#include "reader/device/cuda_handles.hpp"

namespace precache {
namespace {

constexpr std::size_t kCopyBytes = std::size_t{32} << 20;
constexpr std::uint64_t kCopiesAtOnce = 4;  // hides the host's part

}  // namespace

double measure_link(int device, const MeasureOptions& measure) {
  using Clock = std::chrono::steady_clock;
  device::check_device(device);
  const device::CurrentDevice current(device);
  const device::PinnedMemory from = device::allocate_pinned(device, kCopyBytes);
  const device::DeviceMemory to = device::allocate_device(device, kCopyBytes);
  const device::Stream stream = device::make_stream(device);
  const auto copy = [&](std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) {
      device::check(
          cudaMemcpyAsync(to.get(), from.get(), kCopyBytes, cudaMemcpyHostToDevice, stream.get()),
          "cudaMemcpyAsync", device);
    }
    device::check(cudaStreamSynchronize(stream.get()), "cudaStreamSynchronize", device);
  };
  copy(1);  // the first copy is slower
  std::uint64_t copies = 0;
  double seconds = 0;
  const auto begin = Clock::now();
  do {
    const std::uint64_t count = std::min(kCopiesAtOnce, measure.batches - copies);
    copy(count);
    copies += count;
    seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  } while (seconds < measure.seconds && copies < measure.batches);
  return static_cast<double>(copies) * static_cast<double>(kCopyBytes) / seconds;
}

}  // namespace precache
