// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "cli/progress_line.hpp"

namespace precache {

/// Shows running work on stderr, unless it is to be quiet: a bar that is redrawn on a terminal,
/// else a line every few seconds. Tells it as events, if they are wanted, and so how it ended.
class ProgressDisplay {
 public:
  /// `describe` is called from another thread, with the seconds since there was a share.
  ProgressDisplay(bool quiet, std::function<ProgressLine(double seconds)> describe);
  /// Wipes the bar.
  ~ProgressDisplay();

 private:
  using Clock = std::chrono::steady_clock;

  void run();
  void draw(int tick) const;
  [[nodiscard]] ProgressLine now() const;
  void send_event() const;
  /// At most `columns` wide; 0: as wide as it gets, without a bar.
  [[nodiscard]] std::string line(std::size_t columns) const;

  std::function<ProgressLine(double seconds)> describe_;
  bool quiet_;
  bool terminal_;
  Clock::time_point start_ = Clock::now();
  std::optional<Clock::time_point> begin_;
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace precache
