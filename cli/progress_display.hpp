// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

namespace precache {

/// How far work is, in words and numbers.
struct ProgressLine {
  std::optional<double> share;  // of the whole; none: it has not begun
  std::string text;
};

/// Shows running work on stderr: a bar that is redrawn on a terminal, else a line every few
/// seconds.
class ProgressDisplay {
 public:
  /// `describe` is called from another thread, with the seconds since there was a share.
  explicit ProgressDisplay(std::function<ProgressLine(double seconds)> describe);
  /// Wipes the bar.
  ~ProgressDisplay();

 private:
  void run();
  /// At most `columns` wide; 0: as wide as it gets, without a bar.
  [[nodiscard]] std::string line(std::size_t columns) const;

  std::function<ProgressLine(double seconds)> describe_;
  bool terminal_;
  std::optional<std::chrono::steady_clock::time_point> begin_;
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace precache
