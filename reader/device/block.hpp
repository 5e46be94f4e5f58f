// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "formats/bytes/host_device.hpp"

namespace precache::device {

/// Memory that the threads of a block share.
struct BlockMemory {
  unsigned long long sum;  // CUDA adds to this type at once
  std::uint32_t counts[256];
  std::uint8_t levels[256];
};

/// The threads of a block that work on one picture together. All call the same functions in the
/// same order, and each of these ends with a barrier.
///
/// On the CPU one thread does the work of all, from the last to the first: a step that needs the
/// result of another one before the barrier would give other pixels there.
class Block {
 public:
  PRECACHE_HOST_DEVICE explicit Block(BlockMemory& memory) : memory_(memory) {}
  [[nodiscard]] PRECACHE_HOST_DEVICE BlockMemory& memory() const { return memory_; }

  /// Calls `body(i)` for i = 0, 1, ..., count - 1, each by one of the threads.
  template <typename Body>
  PRECACHE_HOST_DEVICE void each(std::uint32_t count, const Body& body) const {
#ifdef __CUDA_ARCH__
    for (std::uint64_t i = threadIdx.x; i < count; i += blockDim.x) {
      body(static_cast<std::uint32_t>(i));
    }
    __syncthreads();
#else
    for (std::uint32_t i = count; i-- > 0;) body(i);
#endif
  }
  /// Calls `body` by one thread.
  template <typename Body>
  PRECACHE_HOST_DEVICE void once(const Body& body) const {
    each(1, [&](std::uint32_t) { body(); });
  }
  /// The sum of `body(i)` for i = 0, 1, ..., count - 1, for all threads.
  template <typename Body>
  [[nodiscard]] PRECACHE_HOST_DEVICE std::uint64_t sum(std::uint32_t count,
                                                       const Body& body) const {
#ifdef __CUDA_ARCH__
    unsigned long long mine = 0;
    for (std::uint64_t i = threadIdx.x; i < count; i += blockDim.x) {
      mine += body(static_cast<std::uint32_t>(i));
    }
    if (threadIdx.x == 0) memory_.sum = 0;
    __syncthreads();
    atomicAdd(&memory_.sum, mine);
    __syncthreads();
    const std::uint64_t result = memory_.sum;
    __syncthreads();  // before the next sum
    return result;
#else
    std::uint64_t result = 0;
    for (std::uint32_t i = count; i-- > 0;) result += body(i);
    return result;
#endif
  }
  /// Adds one to a counter that other threads add to.
  PRECACHE_HOST_DEVICE static void count(std::uint32_t& counter) {
#ifdef __CUDA_ARCH__
    atomicAdd(&counter, 1U);
#else
    ++counter;
#endif
  }

 private:
  BlockMemory& memory_;
};

}  // namespace precache::device
