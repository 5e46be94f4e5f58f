// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

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
    handle(on_signal);
  }
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;
  ~StopOnSignal() { reset(); }

  /// Lets signals end the process. They do that by default, but not for the first process of a
  /// container: the kernel ignores its signals without a handler.
  static void reset() { handle(::getpid() == 1 ? end_at_once : SIG_DFL); }

  /// Ends the process by the signal that was received, so that the shell sees it. The first process
  /// of a container ends with the status that a shell would show.
  [[noreturn]] static void raise_again() {
    std::raise(signal_);
    end_at_once(signal_);
  }

 private:
  using Handler = void (*)(int);

  static void handle(Handler handler) {
    for (const int number : {SIGINT, SIGTERM}) {
      // A shell ignores signals for jobs in the background; that stays so.
      if (std::signal(number, handler) == SIG_IGN) std::signal(number, SIG_IGN);
    }
  }
  [[noreturn]] static void end_at_once(int number) { ::_exit(128 + number); }
  static void on_signal(int number) {
    reset();
    signal_ = number;
    flag_->store(true);
  }

  static inline std::atomic<bool>* flag_ = nullptr;
  static inline volatile std::sig_atomic_t signal_ = 0;
};

}  // namespace precache
