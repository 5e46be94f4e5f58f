// SPDX-License-Identifier: Apache-2.0
#include "cli/progress_display.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "cli/say.hpp"

namespace precache {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kBarWidth = 12;

std::size_t terminal_columns() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::string bar(double share) {
  const auto filled = static_cast<std::size_t>(share * static_cast<double>(kBarWidth));
  return "[" + std::string(filled, '#') + std::string(kBarWidth - filled, '.') + "]";
}

}  // namespace

ProgressDisplay::ProgressDisplay(std::function<ProgressLine(double seconds)> describe)
    : describe_(std::move(describe)),
      terminal_(::isatty(STDERR_FILENO) == 1),
      thread_([this] { run(); }) {}

ProgressDisplay::~ProgressDisplay() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  thread_.join();
  if (terminal_) say("\r\x1b[K");
}

void ProgressDisplay::run() {
  constexpr auto kTick = 100ms;
  constexpr int kTicksPerLine = 50;  // where no terminal is
  std::unique_lock lock(mutex_);
  for (int tick = 1; !stop_.wait_for(lock, kTick, [&] { return stopping_; }); ++tick) {
    if (!begin_ && describe_(1).share) begin_ = std::chrono::steady_clock::now() - kTick;
    if (terminal_) {
      say("\r{}\x1b[K", line(terminal_columns() - 1));
    } else if (tick % kTicksPerLine == 0) {
      say("{}\n", line(0));
    }
    std::fflush(stderr);
  }
}

std::string ProgressDisplay::line(std::size_t columns) const {
  const auto now = std::chrono::steady_clock::now();
  const ProgressLine progress =
      describe_(begin_ ? std::chrono::duration<double>(now - *begin_).count() : 1);
  if (!progress.share) return progress.text;
  // A narrow terminal keeps the numbers.
  const std::string drawn = bar(*progress.share) + " " + progress.text;
  if (drawn.size() <= columns) return drawn;
  return columns == 0 ? progress.text : progress.text.substr(0, columns);
}

}  // namespace precache
