// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "formats/bytes/host_device.hpp"
#include "reader/device/pixel_work.hpp"

namespace precache::device {

/// kCount elements that one or two instructions load or store.
template <typename T, std::uint32_t kCount>
struct alignas(sizeof(T) * kCount < kChunkBytes ? sizeof(T) * kCount : kChunkBytes) Pack {
  T at[kCount];
};

template <typename T>
PRECACHE_HOST_DEVICE inline bool is_aligned(const void* at) {
  return reinterpret_cast<std::uintptr_t>(at) % alignof(T) == 0;
}

/// memcpy() would do, but nvcc makes single bytes of it. On the CPU, where any address does, it
/// throws for one that would stop a GPU.
template <typename To, typename From>
PRECACHE_HOST_DEVICE inline void move_aligned(To* to, const From* from) {
#ifdef __CUDA_ARCH__
  *reinterpret_cast<From*>(to) = *from;
#else
  if (!is_aligned<From>(to) || !is_aligned<From>(from)) throw std::logic_error("misaligned access");
  std::memcpy(to, from, sizeof *from);
#endif
}

}  // namespace precache::device
