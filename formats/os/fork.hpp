// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>

namespace precache {

/// Tells a process from the ones that it was forked from.
[[nodiscard]] std::uint64_t fork_generation();

/// A mutex that fork() waits for, so that the child finds it free and what it guards whole,
/// whatever other threads were doing.
///
/// REQUIRES: whoever holds one takes no other lock, and neither makes nor destroys one of these.
class ForkSafeMutex {
 public:
  ForkSafeMutex();
  ForkSafeMutex(const ForkSafeMutex&) = delete;
  ForkSafeMutex& operator=(const ForkSafeMutex&) = delete;
  ~ForkSafeMutex();

  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

}  // namespace precache
