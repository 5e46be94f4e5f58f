// SPDX-License-Identifier: Apache-2.0
#include "cli/progress_display.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "cli/events.hpp"
#include "cli/say.hpp"

namespace precache {
namespace {

using namespace std::chrono_literals;
using Seconds = std::chrono::duration<double>;

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

ProgressDisplay::ProgressDisplay(bool quiet, std::function<ProgressLine(double seconds)> describe)
    : describe_(std::move(describe)),
      quiet_(quiet),
      terminal_(!quiet && ::isatty(STDERR_FILENO) == 1) {
  if (!quiet || events::are_wanted()) thread_ = std::thread([this] { run(); });
}

ProgressDisplay::~ProgressDisplay() {
  if (!thread_.joinable()) return;
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_all();
  thread_.join();
  if (terminal_) say("\r\x1b[K");
  send_event();
}

void ProgressDisplay::run() {
  constexpr auto kTick = 100ms;
  constexpr int kTicksPerEvent = 2;
  std::unique_lock lock(mutex_);
  for (int tick = 1; !stop_.wait_for(lock, kTick, [&] { return stopping_; }); ++tick) {
    if (!begin_ && describe_(1).share) begin_ = Clock::now() - kTick;
    if (!quiet_) draw(tick);
    if (tick % kTicksPerEvent == 0) send_event();
  }
}

void ProgressDisplay::draw(int tick) const {
  constexpr int kTicksPerLine = 50;  // where no terminal is
  if (terminal_) {
    say("\r{}\x1b[K", line(terminal_columns() - 1));
  } else if (tick % kTicksPerLine == 0) {
    say("{}\n", line(0));
  }
  std::fflush(stderr);
}

ProgressLine ProgressDisplay::now() const {
  return describe_(std::max(Seconds(Clock::now() - begin_.value_or(start_)).count(), 1e-3));
}

void ProgressDisplay::send_event() const {
  if (events::are_wanted()) events::progress(now(), Seconds(Clock::now() - start_).count());
}

std::string ProgressDisplay::line(std::size_t columns) const {
  const ProgressLine progress = now();
  if (!progress.share) return progress.text;
  // A narrow terminal keeps the numbers.
  const std::string drawn = bar(*progress.share) + " " + progress.text;
  if (drawn.size() <= columns) return drawn;
  return columns == 0 ? progress.text : progress.text.substr(0, columns);
}

}  // namespace precache
