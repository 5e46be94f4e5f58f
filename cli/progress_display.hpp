// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "cli/events.hpp"

namespace precache {

/// Shows the progress of a command on stderr, unless it is quiet: a bar that is redrawn on a
/// terminal, else a line every few seconds. Also sends it as events, the last one at the end, if
/// they are wanted.
class ProgressDisplay {
 public:
  /// `describe` is called from another thread, with the seconds since the total is known.
  ProgressDisplay(bool quiet, std::function<ProgressLine(double seconds)> describe);
  /// Removes the bar.
  ~ProgressDisplay();

 private:
  using Clock = std::chrono::steady_clock;

  void run();
  void draw(int tick);
  [[nodiscard]] ProgressLine now() const;
  void send_event() const;

  std::function<ProgressLine(double seconds)> describe_;
  bool quiet_;
  bool terminal_;
  std::size_t drawn_ = 0;  // columns of the line on the terminal
  Clock::time_point start_ = Clock::now();
  std::optional<Clock::time_point> begin_;
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace precache
