// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "precache/convert/build.hpp"

namespace precache {

/// Shows a running build on stderr: a bar that is redrawn on a terminal, else a line every few
/// seconds.
class ProgressDisplay {
 public:
  explicit ProgressDisplay(const BuildProgress& progress);
  /// Wipes the bar.
  ~ProgressDisplay();

 private:
  void run();
  /// At most `columns` wide; 0: as wide as it gets, without a bar.
  [[nodiscard]] std::string line(std::size_t columns) const;

  const BuildProgress& progress_;
  bool terminal_;
  std::chrono::steady_clock::time_point begin_{};  // of the first sample
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace precache
