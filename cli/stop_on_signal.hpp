// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <csignal>

namespace precache {

/// During its lifetime the first SIGINT or SIGTERM sets a flag, so that work can stop cleanly; a
/// second one ends the process at once. Only one may exist at a time.
class StopOnSignal {
 public:
  explicit StopOnSignal(std::atomic<bool>& flag) {
    static_assert(std::atomic<bool>::is_always_lock_free);  // or a handler may not touch it
    flag_ = &flag;
    for (const int number : {SIGINT, SIGTERM}) {
      // A shell ignores signals for jobs in the background; that stays so.
      if (std::signal(number, on_signal) == SIG_IGN) std::signal(number, SIG_IGN);
    }
  }
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;
  ~StopOnSignal() { reset(); }

  /// Ends the process by the signal that was received, so that the shell sees it.
  static void raise_again() { std::raise(signal_); }

 private:
  static void reset() {
    for (const int number : {SIGINT, SIGTERM}) {
      if (std::signal(number, SIG_DFL) == SIG_IGN) std::signal(number, SIG_IGN);
    }
  }
  static void on_signal(int number) {
    reset();
    signal_ = number;
    flag_->store(true);
  }

  static inline std::atomic<bool>* flag_ = nullptr;
  static inline volatile std::sig_atomic_t signal_ = 0;
};

}  // namespace precache
