// SPDX-License-Identifier: Apache-2.0
#include "cli/progress_display.hpp"

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
constexpr std::size_t kBarColumns = kBarWidth + 3;  // with brackets and a space

std::string bar(double share) {
  const auto filled = static_cast<std::size_t>(share * static_cast<double>(kBarWidth));
  return "[" + terminal::styled(STDERR_FILENO, terminal::kCyan, std::string(filled, '#')) +
         std::string(kBarWidth - filled, '.') + "] ";
}

void write_raw(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace

ProgressDisplay::ProgressDisplay(bool quiet, std::function<ProgressLine(double seconds)> describe)
    : describe_(std::move(describe)),
      quiet_(quiet),
      terminal_(!quiet && terminal::is_terminal(STDERR_FILENO)) {
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
  if (terminal_) write_raw("\r" + std::string(drawn_, ' ') + "\r");
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

void ProgressDisplay::draw(int tick) {
  constexpr int kTicksPerLine = 50;  // where there is no terminal
  const ProgressLine progress = now();
  if (!terminal_) {
    if (tick % kTicksPerLine == 0) write_raw(printable(progress.text) + "\n");
    return;
  }
  const std::size_t room = terminal::width(STDERR_FILENO) - 1;  // the last column is the cursor's
  const std::string text = printable(progress.text).substr(0, room);
  const bool has_bar = progress.share && kBarColumns + text.size() <= room;
  const std::size_t columns = text.size() + (has_bar ? kBarColumns : 0);
  // Spaces wipe what is left of a longer line. Unlike an escape sequence, every terminal knows
  // them.
  const std::string rest(drawn_ > columns ? drawn_ - columns : 0, ' ');
  write_raw("\r" + (has_bar ? bar(*progress.share) : "") + text + rest);
  drawn_ = columns;
}

ProgressLine ProgressDisplay::now() const {
  return describe_(std::max(Seconds(Clock::now() - begin_.value_or(start_)).count(), 1e-3));
}

void ProgressDisplay::send_event() const {
  if (events::are_wanted()) events::progress(now(), Seconds(Clock::now() - start_).count());
}

}  // namespace precache
