// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <mutex>

namespace precache {

/// A number that differs between a process and the processes it was forked from.
[[nodiscard]] std::uint64_t fork_generation();

/// A mutex that fork() waits for: in the child it is free, and the data that it guards is
/// consistent, whatever other threads were doing.
///
/// REQUIRES: a thread that holds one takes no other lock, and neither creates nor destroys a
/// ForkSafeMutex.
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
