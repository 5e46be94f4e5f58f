// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <cstddef>
#include <mutex>
#include <vector>

#include "reader/device/cuda_handles.hpp"
#include "reader/loader/batch_buffer.hpp"

namespace precache::device {

/// Pinned memory for batches. All of it is allocated at first, because pinning takes milliseconds.
class PinnedBuffers {
 public:
  PinnedBuffers(int device, std::size_t count, std::size_t bytes) {
    for (std::size_t i = 0; i < count; ++i) {
      all_.push_back(allocate_pinned(device, bytes));
      free_.push_back(all_.back().get());
    }
  }
  /// REQUIRES: fewer than `count` buffers are taken; the buffer does not outlive this object.
  AlignedBuffer take() {
    const std::lock_guard lock(mutex_);
    assert(!free_.empty());
    std::byte* const buffer = free_.back();
    free_.pop_back();
    return {buffer, [this](std::byte* bytes) {
              const std::lock_guard free_lock(mutex_);
              free_.push_back(bytes);
            }};
  }

 private:
  std::vector<PinnedMemory> all_;
  std::mutex mutex_;
  std::vector<std::byte*> free_;
};

}  // namespace precache::device
